-- People seen per zip code and hour of the day, beside the taxi trips that ended in that hour of the day.
with trips as (
  select hour(dropoff) as hour, count(*) as trips from taxi_trips_distinct group by all
),
seen as (
  select zip_code, hour(window.start) as hour, sum(count) as people from live_nest_camera_stats group by all
)
select zip_code, hour, people, coalesce(trips, 0) as trips from seen left join trips using (hour)
