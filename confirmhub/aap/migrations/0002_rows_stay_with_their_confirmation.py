"""A submission is never changed, and leaves with its confirmation, for which `confirmhub_retire` alone sees."""

from django.db import migrations

GUARD = """
ALTER TABLE aap_submission ADD CONSTRAINT aap_submission_of_confirmation
    FOREIGN KEY (confirmation_id) REFERENCES confirmations_confirmation ON DELETE CASCADE;
CREATE TRIGGER aap_append_only BEFORE UPDATE OR DELETE ON aap_submission
    FOR EACH ROW EXECUTE FUNCTION confirmations_append_only('retires');
CREATE TRIGGER aap_stays_whole BEFORE TRUNCATE ON aap_submission
    FOR EACH STATEMENT EXECUTE FUNCTION confirmations_append_only();
"""

UNGUARD = """
DROP TRIGGER aap_stays_whole ON aap_submission;
DROP TRIGGER aap_append_only ON aap_submission;
ALTER TABLE aap_submission DROP CONSTRAINT aap_submission_of_confirmation;
"""


class Migration(migrations.Migration):
    dependencies = [("aap", "0001_initial"), ("confirmations", "0002_rows_hold_the_rules")]

    operations = [migrations.RunSQL(GUARD, UNGUARD)]
