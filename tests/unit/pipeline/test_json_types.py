"""What documents hold, in; the columns of a table, out."""

import sys

import pytest
from messages import refused
from pyspark.sql import types as T  # noqa: N812

from pipeline.ingest.json_types import MAX_FIELDS, MAX_NAMES, AmbiguousNames, TooManyFields, TypeChanged, check_size, paths, widened

LONG, DOUBLE, TEXT, TRUTH, NULL, MIXED = T.LongType(), T.DoubleType(), T.StringType(), T.BooleanType(), T.NullType(), T.VariantType()
NOTHING = T.StructType()


def struct(**fields):
    return T.StructType([T.StructField(name, kind) for name, kind in fields.items()])


def named(name, kind):
    return T.StructType([T.StructField(name, kind)])


@pytest.mark.parametrize(
    ("seen", "column"),
    [
        (LONG, LONG),
        (TEXT, TEXT),
        (TRUTH, TRUTH),
        (DOUBLE, DOUBLE),
        (T.DecimalType(3, 1), DOUBLE),
        (T.DecimalType(21, 0), T.DecimalType(38, 0)),
        (T.DecimalType(1, 0), DOUBLE),
        (T.DecimalType(20, 0), DOUBLE),
        (T.ArrayType(LONG), T.ArrayType(LONG)),
        (T.ArrayType(struct(a=LONG, b=NULL)), T.ArrayType(struct(a=LONG))),
        (struct(a=struct(b=TEXT)), struct(a=struct(b=TEXT))),
    ],
)
def test_a_type_settles(seen, column):
    kept_as_text = {}
    assert widened(NOTHING, struct(f=seen), kept_as_text) == struct(f=column)
    assert kept_as_text == {}


@pytest.mark.parametrize(
    ("seen", "column", "path", "why"),
    [
        (MIXED, TEXT, "f", "mixed types"),
        (T.StructType(), TEXT, "f", "an object without fields"),
        (T.ArrayType(NULL), T.ArrayType(TEXT), "f[]", "an array without values"),
        (T.ArrayType(MIXED), T.ArrayType(TEXT), "f[]", "mixed types"),
        (struct(a=MIXED), struct(a=TEXT), "f.a", "mixed types"),
    ],
)
def test_what_has_no_type_of_its_own_is_kept_as_text_and_said(seen, column, path, why):
    kept_as_text = {}
    assert widened(NOTHING, struct(f=seen), kept_as_text) == struct(f=column)
    assert kept_as_text == {path: why}


def test_whole_numbers_that_a_double_rounds_are_whole():
    assert widened(NOTHING, struct(f=T.DecimalType(20, 0)), {}, struct(f=TEXT)) == struct(f=T.DecimalType(38, 0))


def test_a_column_of_whole_numbers_stays_one():
    whole = struct(f=T.DecimalType(38, 0))
    assert widened(whole, struct(f=T.DecimalType(1, 0)), {}) == whole


def test_what_is_always_null_has_no_column_yet():
    assert widened(NOTHING, struct(a=LONG, b=NULL), {}) == struct(a=LONG)


@pytest.mark.parametrize(
    ("first", "then", "column"),
    [
        (T.StructType(), struct(x=LONG), struct(x=LONG)),
        (struct(x=NULL), struct(x=LONG), struct(x=LONG)),
        (struct(a=struct(x=NULL), y=LONG), struct(a=struct(x=TRUTH)), struct(a=struct(x=TRUTH), y=LONG)),
        (struct(x=NULL), TEXT, TEXT),
        (struct(x=NULL), T.ArrayType(LONG), TEXT),
        (T.ArrayType(NULL), T.ArrayType(LONG), T.ArrayType(LONG)),
        (T.ArrayType(NULL), T.ArrayType(MIXED), T.ArrayType(TEXT)),
        (T.ArrayType(NULL), T.ArrayType(T.ArrayType(NULL)), T.ArrayType(T.ArrayType(TEXT))),
        (T.ArrayType(struct(x=NULL)), T.ArrayType(struct(x=DOUBLE)), T.ArrayType(struct(x=DOUBLE))),
        (T.ArrayType(struct(x=NULL)), T.ArrayType(LONG), T.ArrayType(TEXT)),
    ],
)
def test_an_object_or_array_without_values_has_the_type_that_comes_first(first, then, column):
    kept_as_text = {}
    columns = widened(NOTHING, struct(f=first), kept_as_text)
    wider = widened(columns, struct(f=then), kept_as_text)
    assert wider == struct(f=column)
    assert ("string" in column.simpleString()) == bool(kept_as_text), kept_as_text
    assert widened(wider, struct(f=first), kept_as_text) is wider


def test_numbers_that_a_double_rounds_are_mixed_with_those_of_its_column():
    seen, unrounded = struct(a=DOUBLE, b=T.DecimalType(3, 1), c=LONG), struct(a=MIXED, b=T.DecimalType(3, 1), c=MIXED)
    kept_as_text = {}
    assert widened(NOTHING, seen, kept_as_text, unrounded) == struct(a=TEXT, b=DOUBLE, c=LONG)
    assert kept_as_text == {"a": "mixed types"}
    with refused("field c is double in the table and values of mixed types, or numbers that a double rounds, in the topic", by=TypeChanged):
        widened(struct(c=DOUBLE), struct(c=LONG), {}, struct(c=TEXT))


def test_an_object_of_many_names_is_text_and_a_table_of_too_many_is_refused():
    many = {f"n{number}": LONG for number in range(MAX_NAMES + 1)}
    kept_as_text = {}
    assert widened(NOTHING, struct(f=struct(**many, m=MIXED)), kept_as_text) == struct(f=TEXT)
    assert kept_as_text == {"f": f"an object of more than {MAX_NAMES} names"}
    with refused("field f ", f"{MAX_NAMES} at most", by=TypeChanged):
        widened(struct(f=struct(n0=LONG)), struct(f=struct(**many)), {})
    check_size(struct(**{f"n{number}": LONG for number in range(MAX_FIELDS)}))
    with refused("1,001", by=TooManyFields):
        check_size(struct(**{f"n{number}": LONG for number in range(MAX_FIELDS + 1)}))


def test_new_fields_go_to_the_end_at_every_level():
    columns = struct(a=LONG, s=struct(x=LONG), l=T.ArrayType(struct(y=TEXT)))
    seen = struct(b=TEXT, a=LONG, s=struct(w=DOUBLE, x=LONG), l=T.ArrayType(struct(v=TRUTH)))
    wider = widened(columns, seen, {})
    assert wider == struct(a=LONG, s=struct(x=LONG, w=DOUBLE), l=T.ArrayType(struct(y=TEXT, v=TRUTH)), b=TEXT)


@pytest.mark.parametrize(
    ("column", "seen"),
    [
        (LONG, NULL),
        (DOUBLE, LONG),
        (DOUBLE, T.DecimalType(5, 2)),
        (T.DecimalType(38, 0), LONG),
        (T.DecimalType(38, 0), T.DecimalType(20, 0)),
        (TEXT, LONG),
        (TEXT, struct(a=LONG)),
        (TEXT, MIXED),
        (T.ArrayType(LONG), T.ArrayType(NULL)),
        (struct(a=LONG), T.StructType()),
    ],
)
def test_what_fits_changes_nothing(column, seen):
    columns = struct(f=column)
    assert widened(columns, struct(f=seen), {}) is columns


@pytest.mark.parametrize(
    ("column", "seen", "path", "types"),
    [
        (LONG, DOUBLE, "f", ("bigint", "double")),
        (LONG, T.DecimalType(2, 1), "f", ("bigint", "decimal(2,1)")),
        (LONG, TEXT, "f", ("bigint", "string")),
        (LONG, MIXED, "f", ("bigint", "mixed types")),
        (T.DecimalType(38, 0), T.DecimalType(2, 1), "f", ("decimal(38,0)", "decimal(2,1)")),
        (T.ArrayType(struct(a=LONG)), T.ArrayType(struct(a=TRUTH)), "f[].a", ("bigint", "boolean")),
        (struct(a=LONG), LONG, "f", ("struct<a:bigint>", "bigint")),
    ],
)
def test_what_does_not_fit_is_named_with_both_types(column, seen, path, types):
    with refused(f"field {path} ", *types, by=TypeChanged):
        widened(struct(f=column), struct(f=seen), {})


def test_all_that_does_not_fit_is_named():
    with refused("field a ", "field b ", by=TypeChanged):
        widened(struct(a=LONG, b=LONG), struct(a=TEXT, b=TEXT), {})


@pytest.mark.parametrize(
    ("seen", "told"),
    [
        (struct(id=LONG, Id=LONG), ("field Id ", " id ")),
        (struct(a=T.ArrayType(struct(x=LONG, X=TEXT))), ("field a[].X ", " a[].x ")),
        (struct(sınıf=LONG, sinif=LONG), ("field sinif ", " s\u0131n\u0131f ")),
        (struct(Kafka_Offset=LONG), ("field Kafka_Offset ", " kafka_offset ")),
    ],
)
def test_names_that_cannot_stand_side_by_side(seen, told):
    with refused(*told, by=AmbiguousNames):
        widened(NOTHING, seen, {})
    with pytest.raises(AmbiguousNames):
        widened(struct(other=LONG), seen, {})


def test_a_nested_field_may_be_called_as_a_column_of_every_table():
    assert widened(NOTHING, struct(a=struct(kafka_key=TEXT)), {}) == struct(a=struct(kafka_key=TEXT))


def test_paths_name_every_field_and_quote_what_is_no_plain_name():
    columns = T.StructType([*struct(a=LONG), *named("x.y", T.ArrayType(named("d e", TEXT)))])
    assert list(paths(columns)) == ["a", "`x.y`", "`x.y`[].`d e`"]


def test_the_work_for_an_object_of_many_names_grows_with_them():
    def lines(names):
        many = struct(f=struct(**{f"id{number}": struct(a=LONG, b=NOTHING) for number in range(names)}))
        kept_as_text, count = {}, 0

        def trace(_frame, event, _arg):
            nonlocal count
            count += event == "line"
            return trace

        sys.settrace(trace)
        try:
            columns = widened(NOTHING, many, kept_as_text, many)
        finally:
            sys.settrace(None)
        assert columns == struct(f=TEXT)
        assert kept_as_text == {"f": f"an object of more than {MAX_NAMES} names"}
        return count

    assert lines(4_000) < 11 * lines(400), "ten times the names should run ten times the lines of Python, and not a hundred times"
