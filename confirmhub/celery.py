"""The Celery application: `celery -A confirmhub.celery worker`, and `... beat` beside it."""

# ruff: noqa: E402 - Django loads the apps first, which the imports after it need

from __future__ import annotations

import os
import threading

import django
from celery import Celery, bootsteps

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "confirmhub.settings")
django.setup()

from confirmhub.notifications import relay, scheduler
from confirmhub.notifications.tasks import (
    ESCALATE_DUE,
    EXPIRE_DUE,
    REMIND_DUE,
    RETIRE,
    SEAL,
    SWEEP_CLIENTS,
)
from confirmhub.ops import heartbeat

app = Celery("confirmhub")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.update(
    # The outbox sees to it that nothing is lost; these, that it comes back sooner.
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    worker_prefetch_multiplier=1,
    task_ignore_result=True,
    broker_connection_retry_on_startup=True,
    # Deliveries wait for a mail server; threads wait in one process, which dies as a whole.
    worker_pool="threads",
    worker_concurrency=24,
    worker_timer_precision=0.1,  # seconds, within which a stop is heard
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    beat_scheduler="confirmhub.celery:OutboxScheduler",
    beat_schedule={
        "expire-due": {"task": EXPIRE_DUE, "schedule": 30.0},
        "remind-due": {"task": REMIND_DUE, "schedule": 15.0},
        "escalate-due": {"task": ESCALATE_DUE, "schedule": 15.0},
        "seal": {"task": SEAL, "schedule": 60.0},
        "retire": {"task": RETIRE, "schedule": 3600.0},
        "sweep-clients": {"task": SWEEP_CLIENTS, "schedule": 86_400.0},
    },
)
if app.conf.broker_url.startswith("memory:"):
    # The embedded broker is looked at this often, in seconds.
    app.conf.broker_transport_options = {"polling_interval": 0.1}
app.autodiscover_tasks(["confirmhub.notifications"])


class Relay(bootsteps.StartStopStep):
    """Runs the outbox's relay while the worker runs."""

    requires = ("celery.worker.components:Pool",)

    def start(self, parent: object) -> None:  # noqa: ARG002 - Celery's signature
        self.relay = relay.Relay(
            send=lambda task, kwargs: app.send_task(task, kwargs=kwargs),
            pulse=lambda: heartbeat.beat(name="worker"),
        )
        self.thread = threading.Thread(target=self.relay.run, name="relay", daemon=True)
        self.thread.start()

    def close(self, parent: object) -> None:  # noqa: ARG002 - Celery's signature
        self.relay.stop()

    def stop(self, parent: object) -> None:  # noqa: ARG002 - Celery's signature
        self.thread.join(timeout=2)


app.steps["worker"].add(Relay)


class OutboxScheduler(scheduler.OutboxScheduler):
    """Beat's scheduler, with a pulse that /healthz looks for."""

    def pulse(self) -> None:
        heartbeat.beat(name="beat")
