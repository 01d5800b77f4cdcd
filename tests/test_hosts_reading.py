"""Texts about machines: what real files, pages and tools say, and what is refused."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from pathlib import Path

import pytest
from cases import every
from hypothesis import example, given, settings
from hypothesis import strategies as st

from descriptions import HOSTS_REMARKS
from diagnosis.machines.hosts import Hosts
from diagnosis.machines.placing import even_slots, placement_of
from formats.hosts import read_hosts
from formats.hosts.filters import chosen_hosts
from formats.hosts.slurm import expand_hostlist
from formats.hosts.values import LONGEST_TEXT
from groups import LayoutError
from request.words import sentence

DATA = Path(__file__).parent / "data" / "hosts" / "samples.jsonl"
SAMPLES = {one["id"]: one for one in map(json.loads, DATA.read_text(encoding="utf-8").splitlines())}

law = settings(max_examples=80, deadline=None)


def sample(name: str) -> Hosts:
    return read_hosts(SAMPLES[name]["text"])


def expected(name: str) -> dict:
    return SAMPLES[name]["expected"]


def refusal(text) -> LayoutError:
    with pytest.raises(LayoutError) as caught:
        read_hosts(text)
    return caught.value


def rank_hosts(hosts: Hosts) -> list[str]:
    """The machine of every rank, all slots taken."""
    world = len(hosts.ranks) or sum(slots or 0 for slots in hosts.slots.values())
    placement = placement_of(hosts, world)
    return [placement.host(rank) for rank in range(world)]


def members(places: dict[str, str]) -> dict[str, list[str]]:
    """Place -> its machines, in their order."""
    found: dict[str, list[str]] = {}
    for host, place in places.items():
        found.setdefault(place, []).append(host)
    return found


def remarks(hosts: Hosts) -> list[str]:
    return [one.code for one in hosts.remarks]


# -- host files ------------------------------------------------------------------------------------


@every("name", ["h01", "h02", "h03", "h04", "h05", "h06", "h07", "h11", "h16"])
def test_hosts_and_slots_of_a_host_file(name):
    hosts = sample(name)
    assert [[host, hosts.slots[host]] for host in hosts.names] == expected(name)["hosts"]


@every("name", ["h17", "h18", "h19", "h21", "h22"])
def test_names_alone_keep_their_order_and_say_no_slots(name):
    hosts = sample(name)
    words = re.sub("#.*", "", SAMPLES[name]["text"]).split()
    assert list(hosts.names) == words
    assert set(hosts.slots.values()) == {None}


@every("name", ["h05", "h06", "h11", "h16", "h08", "h10", "h20"])
def test_the_host_of_every_rank(name):
    assert rank_hosts(sample(name)) == expected(name)["rank_host"]


def test_open_mpi_fills_a_host_before_the_next():
    placement = rank_hosts(sample("h07"))[:6]
    where = {
        host: [r for r, at in enumerate(placement) if at == host] for host in ("aa", "bb", "cc")
    }
    assert where == expected("h07")["slot"]


def test_a_rank_file_that_counts_other_hosts_is_refused():
    assert "write their names" in refusal(SAMPLES["h09"]["text"]).why


def test_a_list_of_tasks_has_a_host_once_with_its_tasks():
    hosts = sample("h20")
    assert dict(hosts.slots) == expected("h20")["counts"]
    assert hosts.names == ("node1", "node0")
    assert remarks(hosts) == ["one-line-a-task"]


def test_a_host_named_twice_is_refused_in_a_file_and_a_slot_more_for_mpirun():
    error = refusal(SAMPLES["h12"]["text"])
    assert (error.code, error.alternatives) == ("host-twice", ())
    hosts = read_hosts("mpirun --host a:2,b,a -np 4 x")
    assert dict(hosts.slots) == {"a": 3, "b": 1}
    assert remarks(hosts) == ["slots-added"]


@every("name, option", [("h14", "include"), ("h15", "exclude")])
def test_filters_of_deepspeed_keep_the_order_of_the_host_file(name, option):
    want = expected(name)
    pool = Hosts("hostfile", tuple(want["pool"]), want["pool"])
    found = chosen_hosts(pool, {option: SAMPLES[name]["text"]})
    assert {host: list(gpus) for host, gpus in found.devices.items()} == want["result"]
    assert refusal(SAMPLES[name]["text"]).code == "bad-host-filter"
    lines = "".join(f"{host} slots={slots}\n" for host, slots in want["pool"].items())
    pasted = (
        f"{lines}PATH=/x deepspeed --{option}={SAMPLES[name]['text']} \\\n train.py --include x"
    )
    assert read_hosts(pasted).devices == found.devices


TWO = "# pool\nb slots=4\na slots=4\n"


@every(
    "line, devices",
    [
        ("deepspeed --num_nodes 1 train.py", {"b": (0, 1, 2, 3)}),
        ("deepspeed --num_gpus=2 train.py", {"b": (0, 1), "a": (0, 1)}),
        ("--num_nodes 1 --num_gpus 6", {"b": tuple(range(6))}),  # runner.py: range(num_gpus)
        ("-e b@a:1", {"a": (0, 2, 3)}),
        ("deepspeed -i a:1@a:0 train.py", {"a": (0, 1)}),
    ],
)
def test_a_line_of_deepspeeds_launcher_chooses_from_its_host_file(line, devices):
    hosts = read_hosts(TWO + line)
    assert (hosts.names, hosts.devices) == (tuple(devices), devices)
    assert list(hosts.slots.values()) == [len(gpus) for gpus in devices.values()]
    placement = placement_of(hosts, sum(map(len, devices.values())))
    assert [*placement.where([0])] == [f"{hosts.names[0]}:{devices[hosts.names[0]][0]}"]


def test_a_line_of_deepspeeds_launcher_may_say_nothing_of_hosts():
    hosts = read_hosts(TWO + "deepspeed --launcher pdsh train.py -i a:1")
    assert (hosts.names, hosts.devices) == (("b", "a"), {})
    assert read_hosts("deepspeed slots=4\na slots=4").names == ("deepspeed", "a")


@every(
    "line, said",
    [
        ("-i a -e b", "give one of them"),
        ("-i a --num_gpus 2", "leave --num_nodes and --num_gpus out"),
        ("-e a@b", "it leaves no GPU"),
        ("-i worker", "there is no host 'worker'"),
        ("-i a:4", "a has the GPUs 0 to 3"),
        ("c\n-i c", "nothing says how many GPUs c has"),
        ("--num_gpus 1000000", "2,000,000 GPUs are more than"),
        ("--num_nodes 3", "there are 2 hosts"),
        ("--num_gpus x", "a whole number"),
        ("--num_gpus 0", "a whole number"),
        ("deepspeed --include", "needs a value"),
        ("deepspeed --include 'a", "a quote is open"),
    ],
)
def test_a_filter_that_chooses_nothing_is_refused_with_what_to_write(line, said):
    host, _, option = line.rpartition("\n")  # of another host file
    assert said in str(refusal(f"{host or TWO}\n{option}"))
    assert refusal("deepspeed --include a:0 train.py").code == "bad-host-filter"


@every(
    "text, slots",
    [
        ("a slots = 4\nb max-slots=8", {"a": 4, "b": 8}),
        ("a cpu=2 // the first\n/* b\n */ c count=3", {"a": 2, "c": 3}),
        ("a 8\nb 4", {"a": 8, "b": 4}),
        ("host,slots\na,8\nb,", {"a": 8, "b": None}),
        ('{"a": [0, 1, 2], "b": [0]}', {"a": 3, "b": 1}),
        ('[{"host": "a", "slots": 8}, {"host": "b"}]', {"a": 8, "b": None}),
        ("10.0.0.1:4\nuser@b:2", {"10.0.0.1": 4, "user@b": 2}),
        ("mpirun --host a:2,b:2 -np 4 x", {"a": 2, "b": 2}),
    ],
)
def test_slots_are_read_however_they_are_written(text, slots):
    assert dict(read_hosts(text).slots) == slots


# -- Slurm -----------------------------------------------------------------------------------------


@every("name", ["l02", "l03", "l07", "l10"])
def test_a_host_list_expands_as_scontrol_says(name):
    assert expand_hostlist(SAMPLES[name]["text"]) == expected(name)["hosts"]
    assert list(sample(name).names) == expected(name)["hosts"]


def test_repeats_in_a_host_list_are_the_hosts_of_tasks():
    hosts = read_hosts("n[2,1,1]")
    assert (hosts.names, hosts.ranks) == (("n2", "n1"), ("n2", "n1", "n1"))


@every(
    "text, code",
    [
        ("n[0-999999999]", "too-many-hosts"),
        ("n[0-9999]m[0-9999]", "too-many-hosts"),
        ("n[" + "0-65535,0-65535,0-65535]", "too-many-hosts"),
        ("n[3-1]", "bad-hostlist"),
        ("n[1-2-3]", "bad-hostlist"),
        ("n[a]", "bad-hostlist"),
        ("n[1-2],m[", "bad-hostlist"),
        ("n[[1]]", "bad-hostlist"),
        ("bgl[000x133]", "bad-hostlist"),
    ],
)
def test_a_host_list_that_explodes_or_is_none_is_refused(text, code):
    assert refusal(text).code == code


def dealt(names, slots, way: str) -> str:
    tasks = ",".join(map(str, slots))
    text = f"SLURM_JOB_NODELIST={names}\nSLURM_TASKS_PER_NODE={tasks}\nSLURM_DISTRIBUTION={way}"
    return rank_hosts(read_hosts(text))


@every("name", ["d03", "d04"])
def test_a_plane_of_srun_gives_so_many_tasks_in_turn(name):
    want = expected(name)["tasks"]
    names, slots = ",".join(want), map(len, want.values())
    ranks = dealt(names, slots, "plane\nSLURM_DIST_PLANESIZE=4")
    assert {host: [r for r, at in enumerate(ranks) if at == host] for host in want} == want


def test_cyclic_passes_full_nodes():
    """slurm_step_layout.c, _task_layout_cyclic: nodes of 4, 2, 4, 2 tasks.

    0 1 2 3 / 4 5 6 7 / 8 . 9 . / 10 . 11 .
    """
    for way in ("cyclic", "cyclic:block", "cyclic,NoPack"):
        assert "".join(dealt("a,b,c,d", (4, 2, 4, 2), way)) == "abcdabcdacac"


def test_the_tasks_of_a_step_count_before_those_of_its_job():
    text = "SLURM_JOB_NODELIST=n[0-1]\nSLURM_TASKS_PER_NODE=8(x2)\n"
    assert read_hosts(text + "SLURM_STEP_TASKS_PER_NODE=4(x2)").slots == {"n0": 4, "n1": 4}


def test_a_text_of_other_ranks_is_refused_as_too_few_or_too_many():
    hosts = read_hosts("b\na\nb")
    for world, code in ((4, "too-few-hosts"), (2, "too-many-hosts-for-job")):
        with pytest.raises(LayoutError) as caught:
            placement_of(hosts, world)
        assert caught.value.code == code


def test_the_environment_of_a_job():
    hosts = sample("d05")
    want = expected("d05")
    assert list(hosts.names) == want["hosts"]
    assert list(hosts.slots.values()) == want["tasks_per_node"]
    assert rank_hosts(hosts)[want["rank"]] == want["host"]
    assert refusal("SLURM_JOB_NODELIST=n[1-2]\nSLURM_TASKS_PER_NODE=8(x9)").code == (
        "bad-tasks-per-node"
    )


def test_the_topology_address_of_a_task():
    hosts = read_hosts(
        "SLURM_TOPOLOGY_ADDR=s3.s0.dev2\nSLURM_TOPOLOGY_ADDR_PATTERN=switch.switch.node"
    )
    assert hosts.racks == {"dev2": "s0"}
    assert hosts.level("switch-1") == {"dev2": "s3"}


@every("name", ["t01", "t05", "t07"])
def test_leaf_switches_and_those_above(name):
    hosts = sample(name)
    leaves = {leaf: hosts for leaf, hosts in expected(name)["leaf"].items() if hosts}
    assert members(hosts.racks) == leaves
    above = hosts.level("switch-1")
    parent = {hosts.racks[host]: switch for host, switch in above.items()}
    assert parent == expected(name)["parent"]


@every("name", ["t02", "t04", "t06", "t08"])
def test_blocks_of_slurm(name):
    hosts = sample(name)
    assert members(hosts.racks) == expected(name)["blocks"]
    assert hosts.names == tuple(host for one in expected(name)["blocks"].values() for host in one)


def test_a_comment_above_a_block_names_its_nvlink_domain():
    hosts = sample("t08")
    alias = expected("t08")["alias"]
    assert hosts.level("domain") == {host: alias[block] for host, block in hosts.racks.items()}


def test_a_node_under_two_leaves_is_said():
    hosts = sample("t09")
    (remark,) = hosts.remarks
    assert remark.code == "host-in-two"
    assert remark.facts["host"] in expected("t09")["warning"]
    assert hosts.racks[remark.facts["host"]] == "rack1"


def test_lines_with_a_prefix_of_a_log_are_topology_all_the_same():
    lines = SAMPLES["t05"]["text"].splitlines()
    text = "\n".join(f"INFO:root:Slurm topology: {line}" for line in lines)
    assert read_hosts(text).racks == sample("t05").racks


def test_the_default_topology_of_a_yaml_is_read_and_the_others_said():
    want = expected("t03")
    assert members(sample("t03").racks) == want["topo1"]["leaf"]
    assert remarks(sample("t03")) == ["other-topologies"]
    second = "- topology: topo2" + SAMPLES["t03"]["text"].split("topo2", 1)[1]
    found = re.sub("(?ms)^- topology: topo3.*", "", second)
    assert members(read_hosts(found).racks) == want["topo2"]["blocks"]
    assert refusal("- topology: flat\n  flat: true").code == "bad-host-document"


def test_switches_that_stand_above_themselves_are_refused():
    text = "SwitchName=a Switches=b\nSwitchName=b Switches=a\nSwitchName=l Nodes=n\n"
    assert refusal(text + "SwitchName=a Switches=l").code == "switches-in-a-ring"


# -- clouds, Kubernetes, NVLink --------------------------------------------------------------------


def test_the_last_network_node_of_aws_is_the_leaf():
    hosts = sample("c01")
    assert members(hosts.racks) == expected("c01")["leaf"]
    assert "more-pages" in remarks(hosts)


def test_racks_of_gcp():
    instance = '{"name": "n0", "resourceStatus": {"physicalHost": "/c/r/h"}}'
    assert read_hosts(f"[{instance}]").levels == {"rack": {"n0": "c/r"}, "cluster": {"n0": "c"}}
    assert sample("c02").racks == expected("c02")["rack"]
    assert sample("c04").racks == expected("c04")["nvlink_domain_topograph"]
    assert sample("c04").domains == expected("c04")["nvlink_domain_topograph"]
    path = expected("c04")["path_top_down"]
    for host in path:
        levels = [sample("c04").level(kind)[host] for kind in ("cluster", "block-1", "subblock")]
        assert levels == path[host]


def test_a_table_of_ranks_has_the_machines_by_rank_with_their_racks():
    hosts = sample("c03")
    assert [hosts.racks[name] for name in hosts.names] == [f"C/{rack}" for rack in "bdacefbf"]
    by_rack = sorted(hosts.names, key=lambda name: hosts.racks[name])
    assert by_rack == expected("c03")["readme_sorted"]


def test_labels_of_kubernetes():
    hosts = sample("k01")
    (node,) = hosts.names
    want = expected("k01")
    assert node == want["node"]
    assert hosts.level("domain") == {node: want["nvlink_domain"]}
    assert hosts.level("partition") == {node: want["partition"]}
    assert list(sample("k02").racks.values()) == [expected("k02")["leaf"]]
    assert [next(iter(of.values())) for of in sample("k02").levels.values()] == (
        expected("k02")["path_top_down"][::-1]
    )
    assert list(sample("k03").domains.values()) == [expected("k03")["nvlink_domain"]]
    assert [next(iter(of.values())) for of in [*sample("k03").levels.values()][1:]] == (
        expected("k03")["path_bottom_up"]
    )


def test_other_forms_of_machines_with_racks():
    assert members(sample("o01").racks) == expected("o01")["groups"]
    assert members(sample("n01").domains) == expected("n01")["nvlink_domain"]
    assert members(sample("n01").racks) == expected("n01")["leaf"]
    racks = {"a": "r0", "b": "r0", "c": "r1"}
    for text in (
        "host,block,rack\na,x,r0\nb,x,r0\nc,x,r1",  # the closest first, wherever it is written
        "a r0\nb r0\nc r1",
        "host,rack\na,r0\nb,r0\nc,r1",
        '{"r0": ["a", "b"], "r1": ["c"]}',
        '[{"host": "a", "rack": "r0"}, {"host": "b", "rack": "r0"}, {"host": "c", "rack": "r1"}]',
        '{"blocks": [{"name": "r0", "nodes": "a,b", "labels": 3}, {"name": "r1", "nodes": "c"}]}',
        "SwitchName=r0 Nodes=a,b\nSwitchName=r1 Nodes=c",
    ):
        assert read_hosts(text).racks == racks, text
    switches = '{"switches": [{"name": "spine", "switches": ["leaf"]}], "blocks": '
    hosts = read_hosts(switches + '[{"name": "b", "switch": "leaf", "nodes": ["n[1-2]"]}]}')
    above = {"switch": "leaf", "switch-1": "spine"}
    assert hosts.levels == {kind: dict.fromkeys(hosts.names, of) for kind, of in above.items()}
    for text in ('["a", "b"]', '{"nodes": ["a", "b"]}'):
        assert (read_hosts(text).names, read_hosts(text).racks) == (("a", "b"), {})


@every(
    "text, code",
    [
        ('[{"host": "a"}, "b"]', "bad-host-document"),
        ("all on one line: STATE : x CLIQUEID : 3", "no-hosts"),
        ("SLURM_JOB_NODELIST=n[1-2]\nSLURM_NTASKS_PER_NODE=²", ""),
        ('{"blocks": [{"nodes": "a"}], "switches": [{"name": "s", "switches": 3}]}', ""),
    ],
)
def test_what_nobody_writes_is_left_out_or_refused(text, code):
    if code:
        assert refusal(text).code == code
    else:
        assert set(read_hosts(text).slots.values()) == {None}


def test_two_columns_that_could_be_names_or_racks_are_not_guessed():
    assert refusal("a r0\nb r1").code == "bad-host-line"
    assert read_hosts("a r0").names == ("a", "r0")


def test_a_zero_uuid_and_a_fabric_that_is_not_ready_are_no_domain():
    for name, code in (("f01", "fabric-not-ready"), ("f02", "no-domain")):
        assert sample(name).racks == {}
        assert remarks(sample(name))[0] == code


def test_a_domain_is_the_uuid_and_the_clique_together():
    assert list(sample("f04").racks.values()) == [expected("f04")["partition"]]
    found = {place: sorted(hosts) for place, hosts in members(sample("f05").racks).items()}
    assert found == expected("f05")["partitions"]
    assert refusal("uuid, 7\nuuid, 8").code == "fabric-differs"
    gpu = "GPU {}\n MIG Mode\n  State : Disabled\n Fabric\n  State : Completed\n"
    gpu += "  CliqueId : {}\n  ClusterUUID : u1\n"
    for second, levels in ((7, {"partition": "u1.7", "domain": "u1"}), (8, {})):
        text = gpu.format(0, 7) + gpu.format(1, second)
        if levels:
            assert read_hosts(text).levels == {k: {"node-0": p} for k, p in levels.items()}
        else:
            assert refusal(text).code == "fabric-differs"
    assert read_hosts("fabric.a: uuid, 7\nb: uuid, 7").names == ("fabric.a", "b")
    assert refusal("uuid, N/A").code == "clique-not-said"


def test_the_inside_of_a_node():
    dgx = sample("m01").node
    assert dgx.gpu_links == {"NV12": 28}
    assert {gpu: list(dgx.nearest(gpu)) for gpu in dgx.gpus} == expected("m01")["near_nics"]
    assert dgx.rails == {}
    assert sample("m02").node.rails == expected("m02")["rail_nic"]
    assert sample("m03").node.nics == ()
    spaces = SAMPLES["m02"]["text"].replace("\t", "   ")
    assert read_hosts(spaces).node == sample("m02").node


def test_the_topology_file_of_nccl():
    text = """<system version="1"><cpu numaid="0" host_hash="0x1">
      <pci busid="0000:05:00.0" class="0x060400"><pci busid="0000:07:00.0" class="0x030200">
        <gpu dev="0" sm="90" rank="0"><nvlink target="0000:0a:00.0" count="18" tclass="0x068000"/>
        </gpu></pci><pci busid="0000:08:00.0" class="0x020700"><nic><net name="mlx5_0" speed="400"/>
      </nic></pci></pci>
      <pci busid="0000:09:00.0" class="0x030200"><gpu dev="1" rank="1">
        <nvlink target="0000:0a:00.0" count="18" tclass="0x068000"/></gpu></pci>
    </cpu></system>"""
    node = read_hosts(text).node
    assert (node.gpus, node.nics) == (("GPU0", "GPU1"), ("mlx5_0",))
    assert node.gpu_links == {"NV18": 1}
    assert node.rails["GPU0"] == "mlx5_0"
    pair = '<gpu dev="{}"><nvlink target="{}" count="4"/><nvlink target="{}"/></gpu>'
    ends = "".join(
        f'<pci busid="{own}">{pair.format(own, other, other)}</pci>' for own, other in ("01", "10")
    )
    joined = read_hosts(f"<system><cpu>{ends}</cpu></system>").node
    assert joined.gpu_links == {"NV5": 1}  # straight to each other, over two lines of the file
    assert refusal("<!DOCTYPE x [<!ENTITY a 'b'>]><system/>").code == "bad-host-document"


# -- joining, refusing -----------------------------------------------------------------------------


def test_a_host_file_stands_where_a_topology_says():
    three = "dev7 slots=8\ndev0 slots=8\nother slots=8"
    hosts = read_hosts(three, SAMPLES["t01"]["text"])
    assert hosts.names == ("dev7", "dev0", "other")
    assert hosts.racks == {"dev7": "s1", "dev0": "s0"}
    assert read_hosts("a\nb", "c r0\nd r0").levels == {}
    with pytest.raises(LayoutError) as caught:
        read_hosts(three, "")
    assert (caught.value.code, caught.value.control) == ("no-hosts", "racks")


def test_uneven_slots_are_said_with_the_number_that_all_have():
    assert even_slots(sample("h07")) == 4
    with pytest.raises(LayoutError) as caught:
        even_slots(sample("h11"))
    assert (caught.value.code, caught.value.alternatives) == (
        "uneven-slots",
        ({"gpus_per_node": 1},),
    )
    with pytest.raises(LayoutError) as caught:
        even_slots(sample("h19"))
    assert caught.value.code == "slots-unknown"
    assert even_slots(sample("h19"), 8) == 8


@every(
    "text, code",
    [
        ("", "no-hosts"),
        (" \n# nothing\n", "no-hosts"),
        ("deepspeed train.py", "no-hosts"),
        (None, "not-a-text"),
        (b"a", "not-a-text"),
        ("a" * (LONGEST_TEXT + 1), "text-too-long"),
        ("a slots=x", "bad-host-line"),
        ("a slots=0", "host-without-slots"),
        ("a slots=99999999", "bad-host-line"),
        ("a slots=2000000\nb slots=1", "too-many-ranks"),
        ("a slots=4 max_slots=2", "bad-host-line"),
        ("a:4\na:4", "host-twice"),
        ("rank 0=a slot=0\nrank 2=a slot=1", "rank-missing"),
        ("rank 0=a slot=0\nrank 0=b slot=1", "bad-host-line"),
        ("what is this?", "bad-host-line"),
        ('{"a": 1', "bad-host-document"),
        ('{"a": {"b": 1}}', "bad-host-document"),
        ("[" * 100_000, "bad-host-document"),
        ("- topology: &a [*a]\n  tree: *a", "bad-host-document"),
        ('{"Instances": [{"NetworkNodes": 3}]}', "bad-host-document"),
        ('{"Instances": [{"InstanceId": "i", "NetworkNodes": 3}]}', "bad-host-document"),
        ('[{"resourceStatus": {"physicalHost": "/c/r/h"}}]', "bad-host-document"),
        ('{"blocks": [{"name": "b"}]}', "bad-host-document"),
        ('{"hosts": ' * 900 + "[]" + "}" * 900, "bad-host-document"),
        ('[{"host": "a", "slots": "8"}]', "bad-host-document"),
        ('[{"host": "a", "slots": 0}]', "host-without-slots"),
        ("- topology: t\n  tree: {switches: [{}]}", "bad-host-document"),
        ("a: [1", "bad-host-document"),
        ("a: [" + 5_001 * "[],\n", "bad-host-document"),
        ("a: b\n" * 60_001, "bad-host-document"),
        ("a slots=8\nb eight", "bad-host-line"),
        ("host,slots\na,x", "bad-host-line"),
        ("host,rack\na,r\na,r", "host-twice"),
        ("rank 0=a slot=0\nwhat", "bad-host-line"),
        (" GPU0 GPU1\nGPU0 X NV4", "bad-host-document"),
        ("SLURM_TOPOLOGY_ADDR=s1.s0.n\nSLURM_TOPOLOGY_ADDR_PATTERN=switch.node", "no-hosts"),
        ("a\n-i " + "a@" * 60_000 + "a", "text-too-long"),
        ('{"Instances": []}', "no-hosts"),
        ('[{"host": "a"}, {"host": "a"}]', "host-twice"),
    ],
)
def test_what_is_no_such_text_is_refused_with_its_code(text, code):
    error = refusal(text)
    assert error.code == code
    unquoted = re.sub("'[^']*'|\uff08[^\uff09]*\uff09", "", sentence(error, "zh"))
    assert not re.search("[A-Za-z]+ [a-z]+ [a-z]+", unquoted), unquoted


@law
@given(st.text(max_size=60))
@example("host,rack")
@example("BlockName=")
@example("SwitchName=a Nodes=n[1-")
@example("<a/>")
@example("GPU0 X\nGPU1")
@example("- a: 1\n- 2")
@example("{}")
@example("[]")
@example("[3]")
@example('{"blocks": [{"nodes": 3}]}')
@example('{"metadata": {"labels": {}}}')
@example('{"items": [1]}')
@example("SLURM_JOB_NODELIST=")
@example("x: y")
def test_any_text_is_hosts_or_a_refusal(text):
    try:
        hosts = read_hosts(text)
    except LayoutError as error:
        sentence(error, "zh")
        return
    assert hosts.names
    assert len(set(hosts.names)) == len(hosts.names)
    for one in hosts.remarks:
        HOSTS_REMARKS[one.code]["zh"].format(**one.facts)


LONG = 100_000


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(begin + (piece * LONG)[:LONG] + end, id=f"{begin[:16]!r}, {piece[:8]!r}")
        for begin, piece, end in (
            *(
                (begin, " ", "b")
                for begin in ("a", "a = 1\nc", "GPU0", "SwitchName=s0 Nodes=b", "\\")
            ),
            *(("Clique Id : 1\nab", piece, "!") for piece in (" ", "a ")),
            *((begin, "\n", "x") for begin in ("-H deepspeed", "a slots=8", "SLURM_NODELIST=a")),
            *(("a", run + "x", "") for run in (99 * "\n", 99 * " ", 50 * " \t", 99 * " " + "\n")),
            *(("", piece, "") for piece in ("<!--", "a\t", "a[1-9]", "a: /", "SLURM_X=1\n", "-w ")),
            ("<?xml version='1.0'?><system>-->", "<!--", ""),
            ("GPU0 X\nNIC0", " ", "x"),
            ("a\n*/", "/*", ""),
        )
    ],
)
def test_no_text_costs_more_than_its_length(text):
    """Each ends at once; an expression that tries again from every place would take minutes."""
    with suppress(LayoutError):
        assert read_hosts(text).names


PODS = "NAMESPACE  NAME  READY  STATUS   NODE\nml  t-1  1/1  Running  b\nml  t-0  1/1  Running  a\n"
QUEUE = "JOBID PARTITION NAME USER ST TIME NODES NODELIST(REASON)\n12 gpu t u R 1:02 3 h[1-2,9]\n"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        pytest.param(PODS, ("a", "b"), id="pods with their namespace"),
        pytest.param(f"{QUEUE}13 gpu t u PD 0:00 3 (Priority)\n", ("h1", "h2", "h9"), id="squeue"),
        pytest.param("1: h3\n0: h3\n2: h1\n3: h1\n", ("h3", "h1"), id="srun --label hostname"),
    ],
)
def test_machines_as_programs_print_them(text, names):
    assert read_hosts(text).names == names


@pytest.mark.parametrize(
    "text",
    [f"{PODS}ml  other-0  1/1  Running  c\n", f"{QUEUE}13 gpu t u R 0:10 1 h[3]\n"],
)
def test_machines_of_several_jobs_are_asked_about(text):
    with pytest.raises(LayoutError, match="lists 2 of"):
        read_hosts(text)
