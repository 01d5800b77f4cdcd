"""What an optimizer's step allocates: as torch's own code does, and what is said of it."""

import json

import pytest
from test_command import answered

from request.context import Context
from request.state import State
from training.memory import Training
from training.memory.optimizing import _newton_schulz, optimizer_step
from training.models import MODELS
from training.split import Split
from views.memory.view import memory_html

LLAMA = MODELS["llama3-8b"].model


class Allocated:
    """The most bytes of tensors that operations made while it watched, by torch's dispatcher."""

    def __enter__(self):
        import weakref

        from torch.utils._python_dispatch import TorchDispatchMode
        from torch.utils._pytree import tree_leaves

        watched = self
        watched.now = watched.most = 0
        seen = weakref.WeakKeyDictionary()

        class Mode(TorchDispatchMode):
            def __torch_dispatch__(self, function, types, args=(), kwargs=None):
                found = function(*args, **(kwargs or {}))
                known = {id(each) for each in tree_leaves((args, kwargs))}
                for each in tree_leaves(found):
                    if hasattr(each, "untyped_storage") and id(each) not in known:
                        storage = each.untyped_storage()
                        if storage in seen or getattr(each, "_base", None) is not None:
                            continue
                        seen[storage] = storage.nbytes()
                        watched.now += storage.nbytes()
                        weakref.finalize(storage, watched.free, storage.nbytes())
                        watched.most = max(watched.most, watched.now)
                return found

        self.mode = Mode()
        self.mode.__enter__()
        return self

    def free(self, size):
        self.now -= size

    def __exit__(self, *error):
        self.mode.__exit__(*error)


SHAPES = ((512, 512), (256, 1024), (512,))


@pytest.mark.parametrize(
    ("name", "options", "copies"),
    [
        ("AdamW", {"foreach": True}, 1),
        ("AdamW", {"fused": True}, 0),
        ("SGD", {"foreach": True, "momentum": 0.9, "weight_decay": 0.1}, 1),
        ("SGD", {"foreach": True, "momentum": 0.9}, 0),
    ],
)
def test_torchs_optimizers_allocate_a_copy_of_all_parameters_or_nothing(name, options, copies):
    torch = pytest.importorskip("torch")
    parameters = [torch.nn.Parameter(torch.ones(shape)) for shape in SHAPES]
    optimizer = getattr(torch.optim, name)(parameters, lr=1e-3, **options)
    for each in parameters:
        each.grad = torch.ones_like(each)
    optimizer.step()  # makes its state
    with Allocated() as allocated:
        optimizer.step()
    whole = sum(4 * each.numel() for each in parameters)
    assert allocated.most == pytest.approx(copies * whole, abs=0.01 * whole)


@pytest.mark.parametrize("shape", [(512, 512), (256, 1024)])
def test_torchs_muon_allocates_for_one_matrix_at_a_time(shape):
    torch = pytest.importorskip("torch")
    parameters = [torch.nn.Parameter(torch.ones(shape)) for _ in range(3)]
    optimizer = torch.optim.Muon(parameters, lr=1e-3)
    for each in parameters:
        each.grad = torch.ones_like(each)
    optimizer.step()
    with Allocated() as allocated:
        optimizer.step()
    assert allocated.most == pytest.approx(_newton_schulz(shape), rel=0.02)


ADAM = {"optimizer": 800.0}


@pytest.mark.parametrize(
    ("how", "why", "size"),
    [
        ({"engine": "fsdp2", "zero": 3}, "foreach", 400.0),
        ({"engine": "ddp", "zero": 0}, "foreach", 400.0),
        ({"engine": "ddp", "zero": 0, "optimizer": "sgd"}, "foreach_sgd", 800.0),
        ({"engine": "fsdp2", "zero": 3, "units": "torchtitan"}, "fused", 0.0),
        ({}, "fused", 0.0),
        ({"engine": "zero", "zero": 2}, "fused", 0.0),
        ({"optimizer": "lion"}, "unknown", None),
        ({"optimizer": "adam8bit"}, "unknown", None),
    ],
)
def test_whose_optimizer_it_is_says_what_it_allocates(how, why, size):
    assert optimizer_step(LLAMA, Split(dp=8), Training(**how), ADAM) == (why, size)


def test_tensor_parallelism_cuts_the_matrices():
    whole, half = (
        optimizer_step(LLAMA, Split(tp=tp), Training(optimizer="muon"), ADAM).bytes for tp in (1, 2)
    )
    assert whole == _newton_schulz((4096, 14336))
    assert half == _newton_schulz((4096, 7168))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_page_and_the_command_say_it_at_the_number(language):
    job = {"framework": "fsdp", "pp": 1, "model": "llama3-8b", "lang": language}
    page = str(memory_html(Context.of(State(**job))))
    assert "foreach AdamW" in page
    assert ("the verdict stays" if language == "en" else "结论不变") in page
    page = str(memory_html(Context.of(State(**job, optimizer="lion"))))
    assert ("implementations differ" if language == "en" else "各实现不同") in page
    page = str(memory_html(Context.of(State(model="llama3-8b", lang=language))))
    assert "foreach" not in page
    printed = answered("memory --framework fsdp --model llama3-8b --format json").out
    step = json.loads(printed)["optimizer_step"]
    assert step["why"] == "foreach"
    assert step["bytes"] > 0
