UPDATE finding_sightings SET excerpt = '{"first":5,"lines":["fn sync() {","    let a = 1;","    let _ = push(a);","    drop(a);","}"],"flagged":{"first":7,"last":8}}'
WHERE finding_id = 201 AND run_id = 101;
