from __future__ import annotations

from structlog.testing import capture_logs
from support.lease_server import LeaseServer

from gpu_pruner.cli.election import alone
from gpu_pruner.errors import Forbidden
from gpu_pruner.kube.lease import LeaseRecord
from gpu_pruner.settings.schema import Settings

AT = 1_769_860_800.0


async def test_a_single_pass_knows_when_a_controller_last_completed_a_cycle():
    server = LeaseServer()
    record = LeaseRecord(holder="a", acquired="", renewed="", last_cycle_at=AT)
    await server.lease().write(record, based_on=None)
    assert (await alone(Settings(), server)).last_cycle_at == AT


async def test_where_no_controller_ever_ran_a_single_pass_counts_from_nothing():
    assert (await alone(Settings(), LeaseServer())).last_cycle_at is None


async def test_a_lease_that_may_not_be_read_stops_no_single_pass_and_is_said():
    server = LeaseServer(failure=Forbidden("no", status=403))
    with capture_logs() as lines:
        assert (await alone(Settings(), server)).last_cycle_at is None
    assert [one["event"] for one in lines] == ["lease not read"]
