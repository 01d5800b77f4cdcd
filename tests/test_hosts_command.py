"""Machines on the command line and over the endpoints: names, racks as levels, the order."""

from __future__ import annotations

import io
import json

import pytest

from cli.command import run
from views.all import ENDPOINTS

HOSTS = "a0 slots=8\nb0 slots=8\na1 slots=8\nb1 slots=8\n"
RACKS = "BlockName=A Nodes=a[0-1]\nBlockName=B Nodes=b[0-1]\n"
JOB = "--nodes 4 --tp 8 --pp 2 --ep 16 --etp 1"


@pytest.fixture
def ask(tmp_path):
    (tmp_path / "hosts").write_text(HOSTS)
    (tmp_path / "racks").write_text(RACKS)

    def answer(command: str) -> tuple[int, str, str]:
        words = command.replace("HOSTS", str(tmp_path / "hosts"))
        argv = words.replace("RACKS", str(tmp_path / "racks")).split()
        out, err = io.StringIO(), io.StringIO()
        return run(argv, io.StringIO(), out, err), out.getvalue(), err.getvalue()

    return answer


def test_the_order_is_printed_as_a_launcher_obeys_it(ask):
    status, out, err = ask(f"order openmpi --hosts HOSTS --racks RACKS {JOB}")
    assert (status, err) == (0, "")
    assert out == "a0 slots=8\na1 slots=8\nb0 slots=8\nb1 slots=8\n"


def test_machines_of_other_slots_than_the_layout_are_ordered_by_what_they_have(ask, tmp_path):
    (tmp_path / "hosts").write_text(HOSTS.replace("=8", "=4"))
    command = "order openmpi --hosts HOSTS --racks RACKS --nodes 2 --tp 8"
    assert ask(command)[1] == "a0 slots=4\na1 slots=4\nb0 slots=4\nb1 slots=4\n"
    job = {"hosts": HOSTS.replace("=8", "=4"), "racks": RACKS, "nodes": 2, "tp": 8}
    assert json.loads(ENDPOINTS["better_order"](**job))["files"]["openmpi"] == ask(command)[1]


def test_machines_from_standard_input_are_read_once_and_remarked_once():
    tasks = "a\na\nb\nb\n"
    for command in ("rank 3", "share 0,3", "share -"):
        argv = [*command.split(), "--hosts", "-", "--nodes", "2", "--gpus-per-node", "2"]
        out, err = io.StringIO(), io.StringIO()
        is_read = command != "share -"  # which reads its log there
        assert (run(argv, io.StringIO(tasks), out, err) == 0) == is_read
        assert err.getvalue().count("\n") == 1
        assert "b" in out.getvalue() or not is_read


def test_options_choose_from_a_host_file_as_deepspeeds_launcher_does(ask):
    chosen = "ranks --nodes 1 --gpus-per-node 4 --format csv --hosts HOSTS --include b0:2,3@a1:0,1"
    rows = [line.split(",")[-2:] for line in ask(chosen)[1].splitlines()[1:]]
    assert rows == [["b0", "2"], ["b0", "3"], ["a1", "0"], ["a1", "1"]]


def test_the_order_is_explained_in_text_and_in_json(ask):
    text = ask(f"order --hosts HOSTS --racks RACKS {JOB}")[1].splitlines()
    assert text[-4:] == ["a0", "a1", "b0", "b1"]
    assert "ep: 0 of 2 groups are in more than one rack, 2 before." in text
    assert "--ep 8 keeps the ep groups in a node." in text
    found = json.loads(ask(f"order --format json --hosts HOSTS --racks RACKS {JOB}")[1])
    assert (found["key_before"], found["key"]) == ([2, 0, 16, 0], [0, 0, 0, 16])
    assert found["is_least"]
    pp_first = ask(f"order --format json --objective pp-first --hosts HOSTS --racks RACKS {JOB}")[1]
    assert json.loads(pp_first)["objective"] == "ep, tp+cp, pp, dp"


def test_ranks_and_groups_stand_on_hosts_by_name(ask):
    csv = ask(f"ranks tp --format csv --hosts HOSTS --racks RACKS {JOB}")[1].splitlines()
    assert csv[0].endswith(",group_tp,host,device,block")
    assert csv[9].endswith(",b0,0,B")
    assert ask(f"ranks --hosts HOSTS {JOB}")[1].splitlines()[9].endswith("  b0       0")
    found = json.loads(ask(f"ranks --format json --hosts HOSTS {JOB}")[1])
    assert found["placement"]["host"] == [
        host for host in ("a0", "b0", "a1", "b1") for _ in range(8)
    ]
    shared = json.loads(ask(f"share 0,9 --format json --hosts HOSTS {JOB}")[1])
    assert shared["rows"][0]["hosts"] == ["a0", "b0"]


def test_a_rank_stands_on_its_host_and_in_its_rack(ask):
    text = ask(f"rank 9 --hosts HOSTS --racks RACKS {JOB}")[1].splitlines()
    assert text[:2] == ["rank 9 of 32: host b0, GPU 1", "block: B"]
    found = json.loads(ask(f"rank 9 --format json --hosts HOSTS --racks RACKS {JOB}")[1])
    assert (found["host"], found["block"], found["node"], found["local_rank"]) == ("b0", "B", 1, 1)


def test_what_measured_numbers_show_is_said_to_programs(ask, tmp_path):
    numbers = [14 if rank // 8 == 1 else 10 + rank % 3 / 10 for rank in range(32)]
    lines = [f"{rank},{number}" for rank, number in enumerate(numbers)]
    (tmp_path / "measures").write_text("\n".join(["rank,ms", *lines]))
    found = json.loads(ask(f"slow {tmp_path / 'measures'} --format json {JOB}")[1])
    alone = [row["ranks"] for row in found["rows"] if row["names"][0] == "rank"]
    assert sorted(alone) == [[rank] for rank in range(8, 16)]
    text = (tmp_path / "measures").read_text()
    job = {"nodes": 4, "tp": 8, "pp": 2, "ep": 16, "etp": 1}
    served = json.loads(ENDPOINTS["slow_groups"](measurements=text, **job))
    assert [one["names"] for one in served["slow"]] == [row["names"] for row in found["rows"]]
    assert json.loads(ENDPOINTS["slow_groups"](measurements=text, worse="low", **job))["slow"] == []
    as_json = json.dumps({str(rank): number for rank, number in enumerate(numbers)})
    assert json.loads(ENDPOINTS["slow_groups"](measurements=as_json, **job)) == served


def test_racks_are_a_level_of_the_audit(ask):
    found = json.loads(ask(f"audit ep --format json --hosts HOSTS --racks RACKS {JOB}")[1])
    assert [(row["level"], row["crossing"]) for row in found["rows"]][-2:] == [
        ("node", 2),
        ("block", 2),
    ]
    assert ask(f"audit ep --hosts HOSTS --racks RACKS {JOB}")[1].splitlines()[2].endswith("block")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("order --nodes 4", "say which machines there are: --hosts FILE"),
        ("order slurm --format json --hosts HOSTS --racks RACKS --nodes 4", "prints text only"),
        ("order jax --hosts HOSTS --nodes 4", "'jax' is not a choice of launcher"),
        ("order --hosts HOSTS --nodes 4", "nothing says in which rack the host 'a0' is"),
        ("order --hosts HOSTS --racks RACKS", "try --nodes 4 --gpus-per-node 8"),
        ("ranks --hosts HOSTS --nodes 8", "try --nodes 4 --gpus-per-node 8"),
        ("audit --hosts HOSTS --nodes 2", "2 hosts from 'a1' on are left over"),
        ("order --hosts RACKS.none", "cannot read"),
        ("order --hosts HOSTS --racks RACKS --nodes 4 --objective xx", "try --objective dp-first"),
        ("ranks --hosts HOSTS --num-nodes 9", "try --num-nodes 4"),
    ],
)
def test_what_cannot_be_answered_is_one_line(ask, command, said):
    status, out, err = ask(command)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_an_order_says_what_a_step_of_a_model_waits_over_racks(ask):
    """A kind's seconds are spread over its groups: none wait where none cross."""
    job = JOB.replace("--ep 16", "--ep 8")
    given = f"order --model mixtral-8x7b --hosts HOSTS --racks RACKS {job}"
    found = json.loads(ask(f"{given} --format json")[1])
    assert 0 < found["seconds"] < found["seconds_before"]
    for name in ("before", "after"):
        summed = sum(row[f"seconds_{name}"] for row in found["rows"])
        told = found["seconds_before" if name == "before" else "seconds"]
        assert summed == pytest.approx(told, abs=1e-5)
        assert all(
            (row[f"seconds_{name}"] > 0) <= (row[f"racks_{name}"] > 0) for row in found["rows"]
        )
    assert "Waited for groups in several racks" in ask(given)[1]
    sizes = {"nodes": 4, "tp": 8, "pp": 2, "ep": 8, "etp": 1, "model": "mixtral-8x7b"}
    served = json.loads(ENDPOINTS["better_order"](hosts=HOSTS, racks=RACKS, **sizes))
    assert (served["seconds"], served["hosts"]) == (found["seconds"], found["hosts"])
    assert "seconds" not in ask(f"order --hosts HOSTS --racks RACKS {job}")[1]
    assert "'gpt9' is not a choice of model" in ask(given.replace("mixtral-8x7b", "gpt9"))[2]


def test_the_endpoints_answer_the_same():
    read = json.loads(ENDPOINTS["read_hosts"](text=HOSTS, racks=RACKS))
    assert read["names"] == ["a0", "b0", "a1", "b1"]
    assert read["racks"] == {"a0": "A", "b0": "B", "a1": "A", "b1": "B"}
    job = {"nodes": 4, "tp": 8, "pp": 2, "ep": 16, "etp": 1}
    found = json.loads(ENDPOINTS["better_order"](hosts=HOSTS, racks=RACKS, **job))
    assert found["hosts"] == ["a0", "a1", "b0", "b1"]
    assert found["files"]["slurm"].split() == [h for h in found["hosts"] for _ in range(8)]
    assert found["kinds"][0]["kind"] == "ep"
    matrix = "\tGPU0\tGPU1\tNIC0\nGPU0\t X \tNV4\tPIX\nGPU1\tNV4\t X \tSYS\nNIC0\tPIX\tSYS\t X "
    inside = json.loads(ENDPOINTS["read_hosts"](text=matrix))["node"]
    assert inside["rails"] == {"GPU0": "NIC0"}
