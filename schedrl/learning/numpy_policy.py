"""A trained policy in NumPy alone: what evaluation, serving and comparisons load (`policy.npz`).

One decision takes some ten microseconds here and a hundred or more through TensorFlow.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from schedrl.learning import networks
from schedrl.learning.checkpoint import check_shapes, load_arrays
from schedrl.learning.distributions import LARGE_NEGATIVE, NotANumberError, first_largest, require_legal
from schedrl.learning.normaliser import Normaliser, normalise
from schedrl.learning.run_description import SCALES, read_description
from schedrl.learning.selection import GREEDY, SAMPLED
from schedrl.settings import UserError, one_of

MASK = "action_mask"


class NumpyPolicy:
    """Implements `schedrl.policy.Policy` with frozen weights and frozen observation statistics.

    `predict` and `scores` change nothing but the generator that `predict` may draw from, so several threads
    may ask one policy. They compute in float64: then the batch that an observation stands in changes nothing
    that could be seen (in float32 it changes logits by some 2e-6). `forward` and `sample`, which training
    acts by, compute in float32.

    Attributes:
        temperature: logits are divided by it when sampling; below 1 is closer to greedy.
        play: "greedy" or "sampled", whichever validation workloads chose when it was trained.
        scales: what times were measured in when it was trained, and are wherever it plays (names and numbers
            of `schedrl.envs.simple_cluster.scales.Scales`); None: not kept, as before there were any.
    """

    def __init__(
        self,
        spec: Mapping[str, Any],
        weights: np.ndarray,
        statistics: Mapping[str, np.ndarray],
        seed: int = 0,
    ):
        self.spec = dict(spec)
        self.representation = spec["representation"]
        self.leaves = {name: (tuple(shape), dtype) for name, (shape, dtype) in spec["leaves"].items()}
        self.num_actions = spec["num_actions"]
        shapes = {name: shape for name, (shape, _) in self.leaves.items()}
        sizes = (self.num_actions, spec["hidden"], spec.get("num_values", 1))
        parts = spec.get("actions", {}).get("sizes")
        choices = parts[0] if parts else None
        network = networks.make_network(
            spec["network"],
            shapes,
            *sizes,
            layer_norm=spec.get("layer_norm", False),
            prior=spec.get("prior", 0.0),
            choices=choices,
        )
        self.network = network
        expected = networks.parameter_shapes(network)
        check_shapes(
            {"parameters": weights.size},
            {"parameters": sum(map(_size, expected.values()))},
            "the policy file",
        )
        self._weights = networks.unpack(networks.NUMPY, weights, expected)
        self._double: dict[str, np.ndarray] | None = None
        normaliser = Normaliser({name: shapes[name] for name in spec["normalised"]})
        normaliser.load_state(statistics)
        self._scale = normaliser.scale()
        self.temperature = 1.0
        self.play = GREEDY
        self.scales: Mapping[str, Any] | None = None
        self.reseed(seed)

    @property
    def acts_on(self) -> dict[str, tuple[tuple[int, ...], str]]:
        """Name -> shape and type of the leaves that a decision needs: not those of the critic alone."""
        if not self.network.private:  # every decision asks
            return self.leaves
        return {name: leaf for name, leaf in self.leaves.items() if name not in self.network.private}

    @classmethod
    def load(cls, path: Path | str, seed: int = 0) -> NumpyPolicy:
        """Read a `policy.npz`.

        Raises:
            UserError: missing, damaged, or from another version.
        """
        return cls.of_file(path, *load_arrays(path, kind="policy"), seed)

    @staticmethod
    def of_file(
        path: Path | str, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any], seed: int = 0
    ) -> NumpyPolicy:
        """Return the policy of what was read from a `policy.npz`; raises as `load`."""
        play = header.get("play", GREEDY)
        one_of(f"way to play in {path}", play, (GREEDY, SAMPLED))
        for name, values in arrays.items():
            if values.dtype.kind not in "fiu" or not np.isfinite(values).all():
                raise UserError(
                    f"{path} can't be played: {name} of it are no finite numbers; train anew, with a lower "
                    "--learning_rate"
                )
        try:
            policy = make_policy(header["spec"], arrays["weights"], arrays, seed)
        except UserError:
            raise
        except (KeyError, TypeError, ValueError, IndexError, ArithmeticError, MemoryError) as error:
            raise UserError(
                f"{path} is damaged: its weights and its header don't fit ({type(error).__name__}: {error}); "
                "put back the file that was written"
            ) from None
        policy.play = play
        policy.scales = header.get(SCALES)
        return policy

    def shapes_on(self, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
        """Return what a decision must be given, name -> shape, where leaves of these shapes are shown.

        As in training, but for the numbers of machines and job slots where the network can do with others:
        one whose weights are shared over both doesn't mind (`pair_scorer`). What each machine and each job
        shows must be as in training.
        """
        wanted = {name: shape for name, (shape, _) in self.acts_on.items()}
        if isinstance(self.network, networks.PairScorer):
            for name in ("queue", "cluster", "pairs"):
                trained, asked = wanted.get(name, ()), tuple(shapes.get(name, ()))
                if len(asked) == len(trained) and asked[-1:] == trained[-1:] and asked:
                    wanted[name] = asked
            return self._with_mask(wanted, self.network.choices_on(wanted["queue"][0], wanted["cluster"][0]))
        return self._with_mask(wanted, None)

    def _with_mask(
        self, wanted: dict[str, tuple[int, ...]], choices: int | None
    ) -> dict[str, tuple[int, ...]]:
        """Add the mask's shape, given the length of the first discrete part; None: as in training."""
        return wanted | {MASK: (self.num_actions if choices is None else choices,)}

    def reseed(self, seed: int) -> None:
        """Restart the generator that `predict(deterministic=False)` draws from."""
        self.rng = np.random.default_rng(seed)

    def forward(self, obs: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
        """Return logits `[B, A]`, illegal ones at LARGE_NEGATIVE, and values `[B]` of a batch."""
        logits, values = self._forward(obs)
        return logits, values.mean(axis=-1)

    def quantiles(self, obs: Mapping[str, Any]) -> np.ndarray:
        """Return the predicted quantiles of the (scaled) return `[B, V]`, lowest first, of a batch.

        Quantile i stands for the share (i + 0.5) / V. V is 1, the mean, without a quantile critic.
        """
        return np.sort(self._forward(obs)[1], axis=-1)

    def _forward(self, obs: Mapping[str, Any], acting: bool = False) -> tuple[np.ndarray, Any]:
        """Return logits and quantiles `[B, V]`, which to act needs not: then None, and logits in float64."""
        mask = np.asarray(obs[MASK], bool)
        require_legal(mask)
        logits, found = self._outputs(obs, acting)
        return np.where(mask, logits, logits.dtype.type(LARGE_NEGATIVE)), found

    def _outputs(self, obs: Mapping[str, Any], acting: bool) -> tuple[np.ndarray, Any]:
        """Return what the network puts out, the mask not yet applied.

        Raises:
            NotANumberError: a leaf that is acted on holds something that is no finite number.
        """
        leaves, values = {}, not acting
        if values and (missing := [name for name in self.network.private if name not in obs]):
            raise UserError(
                f"the critic reads {', '.join(missing)}, which only a simulator shows (privileged); to act "
                "needs none of it: use predict or scores"
            )
        for name, (_, dtype) in (self.leaves if values else self.acts_on).items():
            leaf = np.asarray(obs[name], np.float32)
            if acting:
                _require_finite(name, leaf)
            if name in self._scale:
                leaf = normalise(leaf, *self._scale[name])
            leaves[name] = leaf / np.float32(255.0) if dtype == "uint8" else leaf
        if self.network.extra:
            leaves |= self.network.seen(networks.NUMPY, obs) | {"legal": np.asarray(obs[MASK], bool)}
        weights = self._weights
        if acting:
            weights = self._in_double()
            numbers = {name: leaf for name, leaf in leaves.items() if leaf.dtype == np.float32}
            leaves |= {name: leaf.astype(np.float64) for name, leaf in numbers.items()}
        return self.network.forward(networks.NUMPY, weights, leaves, values=values)

    def _in_double(self) -> dict[str, np.ndarray]:
        if self._double is None:  # two threads may both make it: the same
            self._double = {name: weight.astype(np.float64) for name, weight in self._weights.items()}
        return self._double

    def predict(self, obs: Mapping[str, Any], deterministic: bool = True, draws: Any = None) -> Any:
        """Return the action of one observation (int) or the actions of a batch `[B]` int64.

        Args:
            obs: one observation or a batch.
            deterministic: the likeliest action, the first of those within `distributions.TOLERANCE`.
            draws: where else the action is drawn from, as `schedrl.envs.draws.Draws`; None: the policy's own
                generator.

        Raises:
            NotANumberError: a leaf of the observation holds something that is no finite number.
        """
        obs, single = self._batched(obs)
        logits, _ = self._forward(obs, acting=True)
        if not deterministic:
            noise = (self.rng if draws is None else draws).gumbel(size=logits.shape)
            logits = np.where(obs[MASK], logits / self.temperature + noise, -np.inf)
        actions = first_largest(logits)
        return int(actions[0]) if single else actions

    def sample(
        self, obs: Mapping[str, Any], seed: int, step: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sample for a batch, statelessly; return actions int32, log-probabilities and values, each `[B]`.

        The noise is a function of `(seed, step)` alone (a counter-based generator), so that nothing need be
        saved.
        """
        logits, values = self.forward(obs)
        noise = np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 0, step]))
        # Exponential races: the first arrival among rates exp(logit) is the Gumbel-max sample.
        logits -= logits.max(axis=-1, keepdims=True)
        rates = np.exp(logits)
        clocks = noise.standard_exponential(logits.shape, dtype=np.float32)
        # A clock of exactly 0 at a rate of 0 would be NaN, which argmin takes for the smallest.
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            actions = np.argmin(np.where(rates > 0, clocks / rates, np.inf), axis=-1)
        rows = np.arange(len(actions))
        log_probs = logits[rows, actions] - np.log(rates.sum(axis=-1))
        return actions.astype(np.int32), log_probs, values

    def scores(self, obs: Mapping[str, Any]) -> np.ndarray:
        """Return the logits, `[A]` or `[B, A]`; -inf where illegal."""
        obs, single = self._batched(obs)
        logits = np.where(obs[MASK], self._forward(obs, acting=True)[0], -np.inf)
        return logits[0] if single else logits

    def _batched(self, obs: Mapping[str, Any]) -> tuple[dict[str, np.ndarray], bool]:
        obs = {name: np.asarray(obs[name]) for name in (*self.acts_on, MASK)}
        single = obs[MASK].ndim == 1
        batched = {name: leaf[None] for name, leaf in obs.items()} if single else obs
        check(batched, self.shapes_on({name: leaf.shape[1:] for name, leaf in batched.items()}))
        return batched, single


def check(batch: Mapping[str, np.ndarray], wanted: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse a batch whose leaves have other shapes than is wanted."""
    check_shapes(
        {name: list(leaf.shape[1:]) for name, leaf in batch.items()},
        {name: list(shape) for name, shape in wanted.items()},
        "the observation",
    )


def _require_finite(name: str, leaf: np.ndarray) -> None:
    """Refuse a leaf `[B, ...]` with NaN or infinity in it: arg-max would take the first action.

    Raises:
        NotANumberError: it names the leaf and the place.
    """
    if np.isfinite(leaf).all():
        return
    place = np.argwhere(~np.isfinite(leaf))[0]
    raise NotANumberError(
        f"the observation's leaf {name} holds {leaf[tuple(place)]} at {place[1:].tolist()} (row {place[0]} "
        f"of {len(leaf)}): the policy can't decide on it; mend what observes"
    )


def make_policy(
    spec: Mapping[str, Any], weights: np.ndarray, statistics: Mapping[str, np.ndarray], seed: int = 0
) -> NumpyPolicy:
    """Return the policy of a specification: of one discrete choice, or of `actions` with other parts."""
    if "gaussian" in spec:
        from schedrl.learning.gaussian import GaussianPolicy

        return GaussianPolicy(spec, weights, statistics, seed)
    if "actions" in spec:
        from schedrl.learning.mixed_policy import MixedPolicy

        return MixedPolicy(spec, weights, statistics, seed)
    return NumpyPolicy(spec, weights, statistics, seed)


def load_policy(folder: Path | str, seed: int = 0) -> tuple[NumpyPolicy, dict[str, Any]]:
    """Return the policy in a run's folder and the run's description (`run.json`).

    Raises:
        UserError: a file is missing, damaged or from another version.
    """
    description, path = read_description(folder), Path(folder) / "policy.npz"
    arrays, header = load_arrays(path, kind="policy")
    trained_by = header.get("run_id", description["run_id"])
    if trained_by not in (description["run_id"], *description.get("before", ())):
        raise UserError(
            f"{path} was trained by another run than {Path(folder) / 'run.json'} describes; put back the "
            "file that goes with it (other settings for an evaluation are given on the command line)"
        )
    policy = NumpyPolicy.of_file(path, arrays, header, seed)
    policy.scales = policy.scales or description["settings"].get(SCALES)
    return policy, description


def _size(shape: tuple[int, ...]) -> int:
    return int(np.prod(shape))
