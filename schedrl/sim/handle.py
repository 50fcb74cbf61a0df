"""`hold`: a NamedTuple of arrays as one pointer, in compiled code.

An array in an argument is handed over as seven numbers or more, and a tuple of twenty arrays as so many times
that, at every call that is not inlined. Inlining everything instead took two minutes to compile. Apart from
`jit.py` because it adds a type to Numba (https://numba.readthedocs.io/en/stable/extending/low-level.html).
"""

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.core.datamodel import models
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, register_model
from numba.np.arrayobj import make_array


class Handle(types.Type):
    """Type of a pointer to a NamedTuple of arrays, whose fields are read as those of the tuple are."""

    def __init__(self, what: types.NamedTuple) -> None:
        self.what = what
        super().__init__(f"Handle({what})")


@register_model(Handle)
class _Model(models.PrimitiveModel):
    def __init__(self, dmm, fe_type) -> None:  # noqa: ANN001
        what = dmm.lookup(fe_type.what).get_value_type()
        super().__init__(dmm, fe_type, what.as_pointer())


@infer_getattr
class _Fields(AttributeTemplate):
    key = Handle

    def generic_resolve(self, handle: Handle, name: str) -> types.Type | None:
        what = handle.what
        return what.types[what.fields.index(name)] if name in what.fields else None


@lower_getattr_generic(Handle)
def _read(context, builder, handle, pointer, name):  # noqa: ANN001, ANN202
    """Read an array, but for its reference count: the one who called `hold` has it."""
    place = handle.what.fields.index(name)
    made = make_array(handle.what.types[place])(context, builder)
    for k, field in enumerate(made._datamodel._fields):
        if field in ("meminfo", "parent"):
            setattr(made, field, context.get_constant_null(made._datamodel._members[k]))
            continue
        value = builder.load(cgutils.gep_inbounds(builder, pointer, 0, place, k))
        # Nobody writes into what `hold` has made: it need not be read again after every write.
        value.set_metadata("invariant.load", builder.module.add_metadata([]))
        setattr(made, field, value)
    return made._getvalue()


@intrinsic
def hold(typingctx, arrays):  # noqa: ANN001, ANN201, D417
    """Return a NamedTuple of arrays as a pointer, which is good until the calling function returns.

    Only hand it on to functions compiled by `part`: their reads are taken to see what never changes.
    """

    def codegen(context, builder, signature, args):  # noqa: ANN001, ANN202
        made = cgutils.alloca_once_value(builder, args[0])
        # Through an assembler instruction that does nothing, so that no read moves before this.
        kind = ir.FunctionType(made.type, [made.type])
        return builder.asm(kind, "", "=r,0,~{memory}", [made], True)

    return Handle(arrays)(arrays), codegen
