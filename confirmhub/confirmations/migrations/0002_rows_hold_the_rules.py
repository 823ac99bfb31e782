"""Hold every writer, not only the ledger, to the state machine, to what was asked, and to the log.

The edges are copied, not imported: a migration says what was true when it was written.
tests/confirmations/test_database.py compares the copy with `states.EDGES`.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations

FORWARD = """
-- Each part with its length before it, so that no two events give the same bytes.
CREATE FUNCTION confirmhub_event_hash(
    before bytea, confirmation uuid, seq integer, kind text, actor text, at timestamptz, detail text
) RETURNS bytea LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT sha256(convert_to(string_agg(octet_length(part) || ':' || part, ',' ORDER BY place), 'UTF8'))
    FROM unnest(ARRAY[
        encode(before, 'hex'), confirmation::text, seq::text, kind, actor,
        (extract(epoch FROM at) * 1000000)::bigint::text, detail
    ]) WITH ORDINALITY AS parts(part, place)
$$;

CREATE FUNCTION confirmations_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (OLD.id, OLD.requester_client_id, OLD.requester_subject, OLD.audience, OLD.action, OLD.arguments,
        OLD.digest, OLD.summary, OLD.facts, OLD.fingerprint, OLD.question, OLD.view_digest,
        OLD.tool_digest, OLD.idempotency_key, OLD.policy, OLD.mode, OLD.approvals_needed,
        OLD.approver_group_id, OLD.self_approval, OLD.sign_in_within, OLD.redeem_within,
        OLD.requested_at, OLD.decide_by, OLD.assurance, OLD.remind_at, OLD.escalate_at,
        OLD.escalation_group_id)
       IS DISTINCT FROM
       (NEW.id, NEW.requester_client_id, NEW.requester_subject, NEW.audience, NEW.action, NEW.arguments,
        NEW.digest, NEW.summary, NEW.facts, NEW.fingerprint, NEW.question, NEW.view_digest,
        NEW.tool_digest, NEW.idempotency_key, NEW.policy, NEW.mode, NEW.approvals_needed,
        NEW.approver_group_id, NEW.self_approval, NEW.sign_in_within, NEW.redeem_within,
        NEW.requested_at, NEW.decide_by, NEW.assurance, NEW.remind_at, NEW.escalate_at,
        NEW.escalation_group_id)
    THEN
        RAISE EXCEPTION 'confirmation %: what was asked is fixed', OLD.id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NEW.event_count NOT IN (OLD.event_count, OLD.event_count + 1)
        OR (NEW.event_count = OLD.event_count AND NEW.event_head <> OLD.event_head)
    THEN
        RAISE EXCEPTION 'confirmation %: events are only ever added', OLD.id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NEW.sealed_events < OLD.sealed_events OR NEW.sealed_events > NEW.event_count THEN
        RAISE EXCEPTION 'confirmation %: a seal is not taken back', OLD.id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF NEW.refusals < OLD.refusals OR NEW.has_outcome < OLD.has_outcome
        OR (OLD.reminded_at IS DISTINCT FROM NEW.reminded_at AND OLD.reminded_at IS NOT NULL)
        OR (OLD.escalated_at IS DISTINCT FROM NEW.escalated_at
            AND (OLD.escalated_at IS NOT NULL OR OLD.status <> 'pending'))
    THEN
        RAISE EXCEPTION 'confirmation %: what happened is not taken back', OLD.id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    IF OLD.status = NEW.status THEN
        IF (OLD.redeem_by, OLD.settled_at, OLD.settled_reason, OLD.redeemed_at, OLD.redemption_key)
           IS DISTINCT FROM
           (NEW.redeem_by, NEW.settled_at, NEW.settled_reason, NEW.redeemed_at, NEW.redemption_key)
        THEN
            RAISE EXCEPTION 'confirmation %: nothing changes without a move', OLD.id
                USING ERRCODE = 'integrity_constraint_violation';
        END IF;
    ELSIF OLD.status || '>' || NEW.status NOT IN (
        'pending>approved', 'pending>denied', 'pending>cancelled', 'pending>expired',
        'approved>redeemed', 'approved>revoked', 'approved>expired'
    ) THEN
        RAISE EXCEPTION 'confirmation %: no way from % to %', OLD.id, OLD.status, NEW.status
            USING ERRCODE = 'integrity_constraint_violation';
    ELSIF NEW.status = 'approved' AND NEW.mode <> 'allow' AND NEW.approvals_needed > (
        -- By its schema: a temporary table of the same name would be found first.
        SELECT count(*) FROM public.confirmations_decision
        WHERE confirmation_id = NEW.id AND verdict = 'approve' AND view_digest = NEW.view_digest
            AND (assurance = 'page' OR NEW.assurance = 'host')
    ) THEN
        RAISE EXCEPTION 'confirmation %: not enough approvals of what was asked', OLD.id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END;
$$;
CREATE TRIGGER confirmations_guard BEFORE UPDATE ON confirmations_confirmation
    FOR EACH ROW EXECUTE FUNCTION confirmations_guard();

CREATE FUNCTION confirmations_starts_pending() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status <> 'pending' OR NEW.event_count <> 0 OR NEW.sealed_events <> 0 THEN
        RAISE EXCEPTION 'confirmation %: begins pending and without events', NEW.id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    NEW.requested_at = statement_timestamp();  -- what is old is let go, so nobody says when it was
    RETURN NEW;
END;
$$;
CREATE TRIGGER confirmations_starts_pending BEFORE INSERT ON confirmations_confirmation
    FOR EACH ROW EXECUTE FUNCTION confirmations_starts_pending();

-- What is past keeping leaves through confirmhub_retire alone, and only from where it may.
CREATE FUNCTION confirmations_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND TG_NARGS = 1 AND current_setting('confirmhub.retiring', true) = 'yes' THEN
        RETURN OLD;
    END IF;
    RAISE EXCEPTION '%: rows are only ever added', TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation';
END;
$$;
CREATE TRIGGER confirmations_append_only BEFORE UPDATE OR DELETE ON confirmations_event
    FOR EACH ROW EXECUTE FUNCTION confirmations_append_only('retires');
CREATE TRIGGER confirmations_append_only BEFORE UPDATE OR DELETE ON confirmations_decision
    FOR EACH ROW EXECUTE FUNCTION confirmations_append_only('retires');
CREATE TRIGGER confirmations_append_only BEFORE UPDATE OR DELETE ON confirmations_outcome
    FOR EACH ROW EXECUTE FUNCTION confirmations_append_only('retires');

CREATE TRIGGER confirmations_append_only BEFORE UPDATE OR DELETE ON confirmations_checkpoint
    FOR EACH ROW EXECUTE FUNCTION confirmations_append_only();
CREATE TRIGGER confirmations_append_only BEFORE UPDATE OR DELETE ON confirmations_seal
    FOR EACH ROW EXECUTE FUNCTION confirmations_append_only();
CREATE TRIGGER confirmations_append_only BEFORE UPDATE OR DELETE ON confirmations_haltevent
    FOR EACH ROW EXECUTE FUNCTION confirmations_append_only();
CREATE TRIGGER confirmations_stays BEFORE DELETE ON confirmations_confirmation
    FOR EACH ROW EXECUTE FUNCTION confirmations_append_only('retires');

CREATE FUNCTION confirmations_halt_guard() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' OR OLD.lifted_at IS NOT NULL OR NEW.lifted_at IS NULL
        OR (OLD.id, OLD.client_id, OLD.subject, OLD.action_pattern, OLD.action_like, OLD.reason,
            OLD.set_by_id, OLD.set_at)
           IS DISTINCT FROM
           (NEW.id, NEW.client_id, NEW.subject, NEW.action_pattern, NEW.action_like, NEW.reason,
            NEW.set_by_id, NEW.set_at)
    THEN
        RAISE EXCEPTION 'halt %: it is set once and lifted once', OLD.id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    NEW.lifted_at = statement_timestamp();
    RETURN NEW;
END;
$$;
CREATE TRIGGER confirmations_halt_guard BEFORE UPDATE OR DELETE ON confirmations_halt
    FOR EACH ROW EXECUTE FUNCTION confirmations_halt_guard();

CREATE FUNCTION confirmations_halt_starts() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.lifted_at IS NOT NULL OR NEW.lift_reason <> '""' THEN
        RAISE EXCEPTION 'halt %: it is set before it is lifted', NEW.id
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    NEW.set_at = statement_timestamp();
    RETURN NEW;
END;
$$;
CREATE TRIGGER confirmations_halt_starts BEFORE INSERT ON confirmations_halt
    FOR EACH ROW EXECUTE FUNCTION confirmations_halt_starts();

-- The one writer of the log of stops, with its owner's rights, since the service has none to add a line by
-- itself: no line is without its stop, and no stop without its lines. A reason is JSON in its column.
CREATE FUNCTION confirmations_halt_logged() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    stops constant uuid := '00000000-0000-0000-0000-000000000000';
    kind constant text := CASE TG_OP WHEN 'INSERT' THEN 'stopped' ELSE 'lifted' END;
    actor constant text := 'user ' || CASE TG_OP WHEN 'INSERT' THEN NEW.set_by_id ELSE NEW.lifted_by_id END;
    at constant timestamptz := CASE TG_OP WHEN 'INSERT' THEN NEW.set_at ELSE NEW.lifted_at END;
    detail constant text := CASE TG_OP
        WHEN 'INSERT' THEN format(
            '{"action_like":%s,"action_pattern":%s,"client_id":%s,"halt":"%s","reason":%s,"subject":%s}',
            to_json(NEW.action_like::text), to_json(NEW.action_pattern::text), to_json(NEW.client_id::text),
            NEW.id, NEW.reason, to_json(NEW.subject::text))
        ELSE format('{"halt":"%s","reason":%s}', NEW.id, NEW.lift_reason) END;
BEGIN
    -- All stops have one chain, and of two that are set at once the second waits.
    PERFORM pg_advisory_xact_lock(hashtextextended('confirmhub stops', 0));
    INSERT INTO confirmations_haltevent (seq, kind, actor, at, detail, hash)
    SELECT last.seq + 1, kind, actor, at, detail,
        confirmhub_event_hash(last.hash, stops, last.seq + 1, kind, actor, at, detail)
    FROM (SELECT seq, hash FROM confirmations_haltevent UNION ALL SELECT 0, ''::bytea) AS last
    ORDER BY last.seq DESC LIMIT 1;
    RETURN NULL;
END;
$$;
-- Or whoever may make a table of their own could have it write what they like.
REVOKE ALL ON FUNCTION confirmations_halt_logged() FROM PUBLIC;
CREATE TRIGGER confirmations_halt_logged AFTER INSERT OR UPDATE ON confirmations_halt
    FOR EACH ROW EXECUTE FUNCTION confirmations_halt_logged();

-- Else one line with a number of its own choice would keep the true ones from ever following.
CREATE FUNCTION confirmations_follows() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    next bigint;
BEGIN
    EXECUTE format('SELECT coalesce(max(seq), 0) + 1 FROM public.%I', TG_TABLE_NAME) INTO next;
    IF NEW.seq <> next THEN
        RAISE EXCEPTION '%: number % follows, and not %', TG_TABLE_NAME, next, NEW.seq
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END;
$$;
CREATE TRIGGER confirmations_follows BEFORE INSERT ON confirmations_haltevent
    FOR EACH ROW EXECUTE FUNCTION confirmations_follows();
CREATE TRIGGER confirmations_follows BEFORE INSERT ON confirmations_checkpoint
    FOR EACH ROW EXECUTE FUNCTION confirmations_follows();

-- The same for the log of one confirmation, whose end its row knows.
CREATE FUNCTION confirmations_event_follows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (
        SELECT FROM public.confirmations_confirmation
        WHERE id = NEW.confirmation_id AND event_count = NEW.seq AND event_head = NEW.hash)
    THEN
        RAISE EXCEPTION 'confirmation %: event % is not where its log ends', NEW.confirmation_id, NEW.seq
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NEW;
END;
$$;
CREATE TRIGGER confirmations_event_follows BEFORE INSERT ON confirmations_event
    FOR EACH ROW EXECUTE FUNCTION confirmations_event_follows();

-- Runs with its owner's rights, since the service has none to add a seal: one that came before its time
-- would keep the true one out, and nothing would be sealed any more.
CREATE FUNCTION confirmhub_seal(most integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    stops constant uuid := '00000000-0000-0000-0000-000000000000';
    sealed integer;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('confirmhub seals', 0)) THEN
        RETURN 0;  -- another is at it
    END IF;
    WITH finished AS (
        UPDATE confirmations_confirmation SET sealed_events = event_count
        WHERE id = ANY(ARRAY(  -- made once, where a list after IN may be made for each row
            SELECT id FROM confirmations_confirmation
            WHERE status IN ('cancelled', 'denied', 'expired', 'redeemed', 'revoked')
                AND sealed_events < event_count
            ORDER BY id LIMIT most FOR NO KEY UPDATE SKIP LOCKED))
        RETURNING id, event_count, event_head
    ), taken AS (
        SELECT id, event_count, event_head FROM finished
        UNION ALL (
            -- The log of the stops, where it has grown since its last seal.
            SELECT stops, seq, hash FROM confirmations_haltevent WHERE seq > (
                SELECT coalesce(max(event_count), 0) FROM confirmations_seal WHERE confirmation_id = stops)
            ORDER BY seq DESC LIMIT 1)
    ), last AS (
        SELECT seq, hash FROM confirmations_checkpoint UNION ALL SELECT 0, ''::bytea
        ORDER BY seq DESC LIMIT 1
    ), listed AS (
        SELECT count(*) AS count, array_agg(
            id || ' ' || event_count || ' ' || encode(event_head, 'hex') ORDER BY id) AS lines
        FROM taken
    ), made AS (
        INSERT INTO confirmations_checkpoint (seq, at, count, hash)
        SELECT last.seq + 1, statement_timestamp(), listed.count, (
            SELECT sha256(convert_to(
                string_agg(octet_length(part) || ':' || part, ',' ORDER BY place), 'UTF8'))
            FROM unnest(ARRAY[
                encode(last.hash, 'hex'), (last.seq + 1)::text,
                (extract(epoch FROM statement_timestamp()) * 1000000)::bigint::text
            ] || listed.lines) WITH ORDINALITY AS parts(part, place))
        FROM last, listed WHERE listed.count > 0 RETURNING seq
    )
    INSERT INTO confirmations_seal (checkpoint_id, confirmation_id, event_count, head)
    SELECT made.seq, taken.id, taken.event_count, taken.event_head FROM made, taken;
    GET DIAGNOSTICS sealed = ROW_COUNT;
    RETURN sealed;
END;
$$;

-- Runs with its owner's rights, since the service has none to delete. It takes whole logs alone, finished
-- and sealed to the last event, and none younger than a day.
CREATE FUNCTION confirmhub_retire(older_than interval, most integer) RETURNS integer
    LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp AS $$
DECLARE
    old uuid[];
BEGIN
    IF older_than < interval '1 day' THEN
        RAISE EXCEPTION 'what is younger than a day is kept' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    old := ARRAY(
        SELECT id FROM confirmations_confirmation AS old_row
        WHERE status IN ('cancelled', 'denied', 'expired', 'redeemed', 'revoked')
            AND requested_at < now() - older_than
            AND EXISTS (
                SELECT FROM confirmations_seal AS seal
                WHERE seal.confirmation_id = old_row.id
                    AND (seal.event_count, seal.head) = (old_row.event_count, old_row.event_head))
            AND (status <> 'redeemed' OR id IN (SELECT confirmation_id FROM confirmations_outcome))
        ORDER BY requested_at LIMIT most FOR UPDATE SKIP LOCKED);
    PERFORM set_config('confirmhub.retiring', 'yes', true);
    DELETE FROM confirmations_notice WHERE confirmation_id = ANY(old);
    DELETE FROM confirmations_decision WHERE confirmation_id = ANY(old);
    DELETE FROM confirmations_outcome WHERE confirmation_id = ANY(old);
    DELETE FROM confirmations_event WHERE confirmation_id = ANY(old);
    DELETE FROM confirmations_confirmation WHERE id = ANY(old);
    PERFORM set_config('confirmhub.retiring', '', true);
    RETURN coalesce(array_length(old, 1), 0);
END;
$$;

CREATE FUNCTION confirmations_ring() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    -- Transactions that notify commit one at a time, so the many that insert no row must not.
    IF EXISTS (SELECT FROM inserted) THEN
        PERFORM pg_notify('confirmhub_outbox', '');
    END IF;
    RETURN NULL;
END;
$$;
CREATE TRIGGER confirmations_ring AFTER INSERT ON confirmations_notice REFERENCING NEW TABLE AS inserted
    FOR EACH STATEMENT EXECUTE FUNCTION confirmations_ring();
CREATE TRIGGER confirmations_ring AFTER INSERT ON confirmations_chore REFERENCING NEW TABLE AS inserted
    FOR EACH STATEMENT EXECUTE FUNCTION confirmations_ring();
"""

BACK = """
DROP TRIGGER confirmations_ring ON confirmations_chore;
DROP TRIGGER confirmations_ring ON confirmations_notice;
DROP FUNCTION confirmations_ring();
DROP FUNCTION confirmhub_seal(integer);
DROP TRIGGER confirmations_event_follows ON confirmations_event;
DROP FUNCTION confirmations_event_follows();
DROP TRIGGER confirmations_follows ON confirmations_checkpoint;
DROP TRIGGER confirmations_follows ON confirmations_haltevent;
DROP FUNCTION confirmations_follows();
DROP TRIGGER confirmations_halt_logged ON confirmations_halt;
DROP FUNCTION confirmations_halt_logged();
DROP TRIGGER confirmations_halt_starts ON confirmations_halt;
DROP FUNCTION confirmations_halt_starts();
DROP TRIGGER confirmations_halt_guard ON confirmations_halt;
DROP FUNCTION confirmations_halt_guard();
DROP FUNCTION confirmhub_retire(interval, integer);
DROP TRIGGER confirmations_stays ON confirmations_confirmation;
DROP TRIGGER confirmations_append_only ON confirmations_haltevent;
DROP TRIGGER confirmations_append_only ON confirmations_seal;
DROP TRIGGER confirmations_append_only ON confirmations_checkpoint;
DROP TRIGGER confirmations_append_only ON confirmations_outcome;
DROP TRIGGER confirmations_append_only ON confirmations_decision;
DROP TRIGGER confirmations_append_only ON confirmations_event;
DROP FUNCTION confirmations_append_only();
DROP TRIGGER confirmations_starts_pending ON confirmations_confirmation;
DROP FUNCTION confirmations_starts_pending();
DROP TRIGGER confirmations_guard ON confirmations_confirmation;
DROP FUNCTION confirmations_guard();
DROP FUNCTION confirmhub_event_hash(bytea, uuid, integer, text, text, timestamptz, text);
"""

# To truncate fires no trigger of a row.
KEPT = (
    *("confirmations_event", "confirmations_decision", "confirmations_outcome", "confirmations_confirmation"),
    *("confirmations_checkpoint", "confirmations_seal", "confirmations_halt", "confirmations_haltevent"),
)


class Migration(migrations.Migration):
    dependencies: ClassVar = [("confirmations", "0001_initial")]
    operations: ClassVar = [
        migrations.RunSQL(FORWARD, BACK),
        *(
            migrations.RunSQL(
                f"CREATE TRIGGER confirmations_stays_whole BEFORE TRUNCATE ON {table}"
                " FOR EACH STATEMENT EXECUTE FUNCTION confirmations_append_only()",
                f"DROP TRIGGER confirmations_stays_whole ON {table}",
            )
            for table in KEPT
        ),
    ]
