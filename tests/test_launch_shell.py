"""Launch scripts: what the shell puts in, and what nobody can tell without running it."""

from __future__ import annotations

import pytest
from launch_answers import TP, check_law, codes, only_problem, values

from formats.launch import parse
from formats.launch.syntax.shell import read_script
from formats.launch.syntax.words import Source, calculate
from formats.launch.training import training_of

pytestmark = pytest.mark.usefixtures("nothing_is_executed")


WRITTEN = """
usage() {{
cat << EOF
usage: bash ./launcher.sh [config-override  [config-override ...]]
config-override  (Optional) A  NeMo configuration override. E.g. trainer.max_steps=10000.
EOF
}}
{}
torchrun --nproc-per-node="4" --nnodes="16" --no-python bash worker_command.sh
"""
"""As AI-Hypercomputer/gpu-recipes 2e1fd5e starts Megatron-Bridge: training/a4x/*/launcher.sh."""

WORKER = """\
  numactl --cpunodebind=\\$((LOCAL_RANK/2)) \\
  python scripts/performance/custom_setup_experiment.py \\
    --model_name llama3 --model_size 70b --compute_dtype fp8_mx \\
    --tensor_model_parallel_size 2 --pipeline_model_parallel_size 4 \\
    --virtual_pipeline_model_parallel_size {}"""

WRITERS = (
    'worker_command=$(cat <<- EOM\n{}\nEOM\n)\necho "$worker_command" > worker_command.sh',
    "cat > worker_command.sh <<'EOM'\n{}\nEOM",
    'W="\n{}"\nbash -c "$W"',
)


@pytest.mark.parametrize("writer", WRITERS)
def test_a_script_that_the_text_writes_is_read_and_help_that_it_prints_is_not(writer):
    parsed = parse(WRITTEN.format(writer.format(WORKER.format(5))))
    check_law(parsed)
    sizes = {"nodes": 16, "gpus_per_node": 4, "tp": 2, "pp": 4, "vpp": 5}
    assert sizes.items() <= parsed.values.items()
    assert training_of(parsed)["model"] == "llama3-70b"
    assert training_of(parsed)["products"] == "mxfp8"
    assert parsed.problems == ()
    none = parse(WRITTEN.format(writer.format(WORKER.format("None"))))
    assert (none.values.get("vpp"), none.problems) == (None, ())


def test_help_and_what_never_ends_is_no_script():
    help_text = "cat <<EOF\nlaunch.py --tensor-model-parallel-size N\nEOF\n"
    assert parse(help_text).values == {}
    open_text = "A=$(cat <<EOM\nx.py --tensor-model-parallel-size 4\n)\necho $A > a.sh"
    assert parse(open_text).values == {}


FORMS = [
    f"{TP} 8",
    f"{TP}=8",
    f"{TP} '8'",
    f'{TP} "8"',
    f"'{TP}' 8",
    f"{TP} \\\n 8",
    f"{TP} \\\r\n 8",
    f"{TP} 8 # of 16",
    f"# {TP} 4\n{TP} 8",
    f"TP=8\nx.py {TP} $TP",
    f"TP=8; x.py {TP} ${{TP}}",
    f'export TP=8\nx.py {TP} "$TP"',
    f"TP=8\nA=$TP\nx.py {TP}=$A",
    f"x.py {TP} ${{TP:-8}}",
    f"x.py {TP} ${{TP:-${{B:-8}}}}",
    f'x.py {TP} "${{TP-8}}"',
    f": ${{TP:=8}}\nx.py {TP} $TP",
    f"A=2\nB=4\nx.py {TP} $((A*B))",
    f"A=9\nx.py {TP} $((-1 + A))",
    f"A=2\nx.py {TP} $((${{A:-3}} * ${{B:-4}}))",
    f'A=2+2\nx.py {TP} $(($A * 2 + $(("1" + 1))))',
    f"TP=8\nx.py {TP} ${{TP:?say it}}",
    f"A=2\nx.py {TP} $(( ($A + 2) * 2 ))",
    f"A=16\nx.py {TP} $((${{A}}/2))",
    f"ARGS=({TP} 8)\nx.py ${{ARGS[@]}}",
    f'ARGS=(\n  --a 1 # one\n  {TP} 8\n)\nx.py "${{ARGS[@]}}"',
    f"ARGS=(--a 1)\nARGS+=({TP} 8)\nx.py ${{ARGS[*]}}",
    f"ARGS='{TP} 8'\nx.py $ARGS",
    f'ARGS="\n {TP} 8 \\\n "\nx.py $ARGS',
    f"ARGS='{TP} 8'\nARGS=\"$ARGS --b 2\"\nx.py $ARGS",
    f"ARGS='--b 2'\nARGS+=' {TP} 8'\nx.py $ARGS",
    f"bash -c 'torchrun x.py {TP} 8'",
    f'CMD="x.py {TP} 8"\nsrun bash -lc "$CMD"',
    f'CMD="x.py {TP} 8"\neval $CMD',
    f"sbatch <<EOF\nsrun x.py {TP} 8\nEOF\n",
    f"x.py 2>&1 {TP} 8 > log.txt",
    f"x.py {TP} 8 | tee --append log",
    f"if true; then\n x.py {TP} 8\nfi",
    f"ARGS=({TP} 8)",
    f"ARGS='{TP} 8 --b 2'",
    f"TP=8\nx.py {TP} ${{TP:-4}}",
    f"A=({TP} 8)\nx.py ${{A[0]}} 8",
    f"A=(--a 1)\nA+=' {TP} 8'\nx.py ${{A[@]}}",
    f"A=(--a '{TP} 8')\nx.py ${{A[@]}}",
    f'A=--a\nA+=({TP} 8)\nx.py "${{A[@]}}"',
    f"A='--a 1'\nx.py ${{A[@]}} {TP} 8",
    f'A=()\nA+={TP}\nx.py "${{A[@]}}" 8',
    f'A=()\nx.py "${{A[@]}}" {TP} 8',
    f"x.py {TP} $'8'",
    f"A=' 8'\nx.py {TP}$A",
    f"A='{TP} '\nx.py ${{A}}8",
    f'x.py --a "$(echo "b c")" {TP} 8',
    f"case $A in x) N=1;; *) N=2;; esac\nx.py {TP} 8",
    f"case $1 in\n -h|{TP}) N=$2;;\n {TP}|-h) N=$2;;\nesac\nx.py {TP} 8",
]


@pytest.mark.parametrize("text", FORMS)
def test_every_way_to_write_a_size(text):
    parsed = parse(text)
    check_law(parsed)
    assert parsed.values == {"tp": 8, "framework": "megatron"}
    assert [problem.code for problem in parsed.problems] == []
    item = parsed.understood[-1]
    assert text[item.start : item.end].strip("'\"").startswith(TP)


OPEN = [
    ("x.py {} $TP", "$TP", "size-unresolved"),
    ("x.py {} ${{TP}}", "${TP}", "size-unresolved"),
    ("x.py {} $1", "$1", "size-unresolved"),
    ("x.py {} $(nproc)", "$(nproc)", "size-unresolved"),
    ("x.py {} `nproc`", "`nproc`", "size-unresolved"),
    ("x.py {} $((N*2))", "$((N*2))", "size-unresolved"),
    ("x.py {} $((8/0))", "$((8/0))", "size-unresolved"),
    ("x.py {} $((8<<1))", "$((8<<1))", "size-unresolved"),
    ("x.py {} $((99999999*99999999))", "$((99999999*99999999))", "size-unresolved"),
    ("x.py {} ${{}}", "${}", "size-unresolved"),
    ("x.py {} ${{TP:?8}}", "${TP:?8}", "size-unresolved"),
    ("A=x\nx.py {} $((A * 2))", "$((A * 2))", "size-unresolved"),
    ("x.py {} " + "$((" * 6 + "8" + "))" * 6, "$((" * 6 + "8" + "))" * 6, "size-unresolved"),
    ("x.py {} ${{A[1]}}", "${A[1]}", "size-unresolved"),
    ("x.py {} " + "${{A:-" * 6 + "8" + "}}" * 6, "${A:-${A:-8}}", "size-unresolved"),
    ("case $A in x) TP=2;; *) TP=8;; esac\nx.py {} $TP", "8", "decided-by-condition"),
    ("if true; then A='{} 8'; fi\nx.py ${{A[@]}}", "8", "decided-by-condition"),
    ("x.py {} <TP>", "<TP>", "size-unresolved"),
    ("TP=$N\nx.py {} $TP", "$N", "size-unresolved"),
    ("if [ -n $A ]; then TP=2; else TP=8; fi\nx.py {} $TP", "8", "decided-by-condition"),
    ("[ -z $A ] && TP=8\nx.py {} $TP", "8", "decided-by-condition"),
    ("[ -z $A ] && N=2 && TP=8\nx.py {} $TP", "8", "decided-by-condition"),
    ("for TP in 1 2; do x.py {} $TP; done", "TP", "decided-by-loop"),
    ("A=(x)\nif true; then A+=({} 8); fi\nx.py ${{A[@]}}", "8", "decided-by-condition"),
]


@pytest.mark.parametrize(("text", "shown", "code"), OPEN)
def test_what_the_text_does_not_work_out_is_never_guessed(text, shown, code):
    text = text.format(TP)
    parsed = parse(text)
    check_law(parsed)
    assert "tp" not in parsed.values
    (item,) = parsed.unresolved
    assert (item.code, text[item.start : item.end], item.sets) == (code, shown, "tp")


def test_an_option_that_a_condition_adds_leaves_the_rest():
    text = f'A="{TP} 8"\nif [ $B ]; then A="$A --num-experts 4"; fi\nx.py $A'
    parsed = parse(text)
    assert parsed.values == {"tp": 8, "framework": "megatron"}
    assert codes(parsed.unresolved) == ["decided-by-condition"]


def test_a_default_that_was_taken_is_said():
    (note,) = [one for one in parse("x.py --nnodes ${N:-4}").missing if one.code != "default"][:1]
    assert (note.code, note.facts) == ("nodes-default", {"name": "N", "value": "4"})
    (note, *_) = parse("x.py --tensor-model-parallel-size ${T:-4}").missing
    assert (note.code, note.facts) == ("variable-default", {"name": "T", "value": "4"})


def test_a_default_that_is_worked_with_has_its_own_value():
    """Of WORLD_SIZE 8 the default that counts is 1, and it is said once."""
    text = f"N=${{SLURM_NNODES:-1}}\nWORLD_SIZE=$((8 * N))\ntorchrun --nnodes $N x.py {TP} 2"
    parsed = parse(text)
    notes = [note for note in parsed.missing if note.code.endswith("-default")]
    assert [(note.code, note.facts) for note in notes] == [
        ("nodes-default", {"name": "SLURM_NNODES", "value": "1"})
    ]
    assert parsed.defaulted == {"nodes": "SLURM_NNODES"}
    whole = parse("WORLD_SIZE=$((8 * ${N:-2}))\nexport WORLD_SIZE\nx.py --nproc-per-node 8")
    assert (whole.values["nodes"], whole.defaulted) == (2, {"nodes": "N"})
    first = whole.understood[0]
    assert (first.name, first.sets) == ("WORLD_SIZE", "gpus")


def test_options_that_no_command_uses_are_not_counted():
    text = f"OLD=({TP} 4)\ntorchrun --nnodes 2 x.py --num-layers 8"
    parsed = parse(text)
    assert parsed.values == {"nodes": 2, "layers": 8}
    assert [(one.code, one.name) for one in parsed.ignored] == [("unused", "OLD")]


def test_what_is_only_printed_is_not_counted():
    assert values(f"echo {TP} 8\nprintf '%s' {TP} 4") == {}


def test_scripts_inside_scripts_are_read_to_a_depth():
    text = f"x.py {TP} 8"
    read = []
    for name in "ABCDEF":
        text = f"bash <<{name}\n{text}\n{name}\n"
        read.append(values(text).get("tp"))
    assert read == [8, 8, 8, 8, None, None]
    assert values(f"python3 - <<EOF\nmodel:\n  num_layers: 4\nEOF\nx.py {TP} 8")["tp"] == 8
    assert "layers" not in values("python3 - <<EOF\nmodel:\n  num_layers: 4\nEOF\n")
    assert values("cat > a.yaml <<EOF\nmodel:\n  num_layers: 4\nEOF\n")["layers"] == 4


BROKEN = [
    ("x.py 'abc", "'", "unclosed"),
    ('x.py "abc', '"', "unclosed"),
    ("A=(--x 1\n", "(", "unclosed"),
    ("cat <<EOF\nabc\n", "\n", "unclosed"),
    ("x.py \\  \n --a", "\\  ", "space-after-backslash"),
]


@pytest.mark.parametrize(("text", "shown", "code"), BROKEN)
def test_what_no_shell_reads_as_meant_is_shown_in_its_place(text, shown, code):
    problem, found = only_problem(text)
    assert (problem.code, found) == (code, shown)


def test_variables_that_would_fill_the_memory_are_stopped():
    text = "A=xxxxxxxxxx\n" + "".join(f"A=$A$A$A$A # {i}\n" for i in range(40)) + f"x.py {TP} $A"
    parsed = parse(text)
    assert "expands-too-much" in codes(parsed.problems)
    check_law(parsed)


def test_arithmetic_is_the_shells():
    assert [
        calculate(text.split()) for text in ("7 / 2", "7 % 4", "2 + 3 * 4", "( 1 - 3 ) / 2")
    ] == [
        *(3, 3, 14),
        -1,
    ]
    assert [calculate(text.split()) for text in ("1 %", "( 1", "1 )", "", "* 2", "9 % 0")] == [
        None
    ] * 6


def test_words_know_where_they_stand():
    text = "A='x y'\nrun \"$A\"z $A"
    (words,) = read_script(Source.of(text)).commands
    assert [(word.text, text[slice(*word.place)]) for word in words] == [
        ("run", "run"),
        ("x yz", "x y"),
        ("x", "x"),
        ("y", "y"),
    ]
