"""Hold every writer to the trail of who edited rules, people and programs: lines are only ever added."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

FORWARD = """
CREATE TRIGGER confirmhub_edits_stay BEFORE UPDATE OR DELETE ON django_admin_log
    FOR EACH ROW EXECUTE FUNCTION confirmations_append_only();
CREATE TRIGGER confirmhub_edits_stay_whole BEFORE TRUNCATE ON django_admin_log
    FOR EACH STATEMENT EXECUTE FUNCTION confirmations_append_only();
"""
BACK = """
DROP TRIGGER confirmhub_edits_stay_whole ON django_admin_log;
DROP TRIGGER confirmhub_edits_stay ON django_admin_log;
"""


class Migration(migrations.Migration):
    dependencies: ClassVar = [
        ("ops", "0001_initial"),
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("confirmations", "0002_rows_hold_the_rules"),
    ]
    operations: ClassVar = [migrations.RunSQL(FORWARD, BACK)]
