-- What values of JSON are accepted, for all domains: docs/values.md. One that is not accepted is null. A kind of value has one macro, as_<kind>.

CREATE MACRO is_object(json) AS json LIKE '{%';

-- A number may be a string that begins with a NUL character: json_texts.AS_WRITTEN.
CREATE MACRO is_string(json) AS json LIKE '"%' AND json NOT LIKE '"\u0000%';

-- Whole numbers, as identifiers often are, and flags are their own texts: to call Python for each would take longer than all else.
CREATE MACRO is_own_text(json) AS regexp_full_match(json, '[1-9]\d{0,17}|true|false');

CREATE MACRO as_text(json) AS CASE
    WHEN is_string(json) THEN json ->> '$' WHEN is_own_text(json) THEN CAST(json AS VARCHAR) WHEN json <> 'null' THEN text_of(json) END;

-- As the archive of devices has it.
CREATE MACRO as_exact_text(json) AS CASE
    WHEN is_string(json) THEN json ->> '$' WHEN is_own_text(json) THEN CAST(json AS VARCHAR) WHEN json <> 'null' THEN exact_text_of(json) END;

CREATE MACRO as_flag(json) AS CASE CAST(json AS VARCHAR) WHEN 'true' THEN true WHEN 'false' THEN false END;

CREATE MACRO in_range(time) AS CASE WHEN time BETWEEN TIMESTAMP '1970-01-01' AND TIMESTAMP '9999-12-31 23:59:59.999999' THEN time END;

-- Date and time of ISO 8601, of the years 1970 to 9999, UTC if there is no offset.
CREATE MACRO as_moment(json) AS CASE
    WHEN regexp_full_match(json, '"(19[7-9]|[2-9]\d\d)\d-\d\d-\d\d[T ]([01]\d|2[0-3]):\d\d:\d\d(\.\d{1,9})?(Z|[+-](0\d|1[0-7]):[0-5]\d)?"')
    THEN in_range(make_timestamp(epoch_us(TRY_CAST(trim(json, '"') AS TIMESTAMPTZ)))) END;

-- Zeros may follow the point. Of 17 digits and more with a point, DuckDB has read an exponent, before which 15 may stand.
CREATE MACRO as_bigint(json) AS CASE
    WHEN regexp_full_match(json, '"\\u0000-?\d{16,19}\.0+"') AND length(replace(json, '-', '')) <= length('"\u0000."') + 38
    THEN TRY_CAST(split_part(substr(json, length('"\u0000') + 1), '.', 1) AS BIGINT)
    WHEN regexp_full_match(json, '-?\d{1,19}(\.0+)?') AND NOT regexp_full_match(json, '-?\d{15}(\d[1-9]|[1-9]\d)\d*\.0')
    THEN TRY_CAST(split_part(json, '.', 1) AS BIGINT) END;

CREATE MACRO as_int(json) AS TRY_CAST(as_bigint(json) AS INTEGER);

-- A number with so many places at most; zeros may follow.
CREATE MACRO with_places(json, places) AS CASE
    WHEN regexp_full_match(json, '-?\d+(\.\d{1,' || places || '}0*)?') THEN CAST(json AS VARCHAR) END;

-- The elements of an array; null if one is no object.
CREATE MACRO as_objects(json) AS CASE
    WHEN json LIKE '[%' AND len(list_filter(json_extract(json, '$[*]'), lambda one: NOT is_object(one) AND one <> 'null')) = 0
    THEN json_extract(json, '$[*]') END;

CREATE MACRO as_texts(json) AS CASE WHEN json LIKE '[%' THEN list_transform(json_extract(json, '$[*]'), lambda one: as_text(one)) END;

CREATE MACRO as_object(json) AS CASE WHEN is_object(json) THEN json END;

CREATE MACRO moment_of_ms(milliseconds) AS CASE
    WHEN milliseconds BETWEEN 0 AND 253402300799999 THEN make_timestamp(milliseconds * 1000) END;

CREATE MACRO is_identifier(text) AS coalesce(length(text) <= 255, true);

-- The names and values of an object; of anything else, that itself without a name.
CREATE MACRO parts(json) AS coalesce(map_entries(json_transform(json, '"MAP(VARCHAR, JSON)"')), [{'key': NULL, 'value': json}]);

-- The mean of amounts with two places or fewer, whose sum is `total`; rounded once, half away from zero, to `places`.
CREATE MACRO mean(total, count, places) AS CAST(
    sign(total) * ((abs(CAST(total * 100 AS HUGEINT)) * CAST(10 ** (places - 2) AS HUGEINT) * 2 + count) // (2 * count))
    * CAST(10 ** (6 - places) AS HUGEINT) AS DECIMAL(32, 0)) * 0.000001;

-- The windows of that length that contain a moment, one start every `slide`; both in microseconds.
CREATE MACRO windows(time, length, slide) AS
    list_transform(range(0, length // slide), lambda n: make_timestamp((epoch_us(time) // slide - n) * slide));

-- In rows: times as text.
CREATE MACRO utc(time) AS strftime(time, '%Y-%m-%dT%H:%M:%SZ');

CREATE MACRO window_from(start, length) AS {'start': utc(start), 'end': utc(start + to_microseconds(length))};

-- The only window of that length that contains a moment, if windows do not overlap.
CREATE MACRO window_of(time, length) AS window_from(make_timestamp(epoch_us(time) // length * length), length);

CREATE MACRO hour_of(time) AS window_of(time, 3600000000);

CREATE MACRO ends_session(time, previous, gap) AS coalesce(epoch_us(time) - epoch_us(previous) > gap, true);
