"""Unicode data, as generated modules. `confirmhub.display.properties` reads them."""
