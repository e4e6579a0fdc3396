//! Traces that nobody recorded: whatever is in a text, it is read or refused with its line.

use danlu_types::Span;
use proptest::prelude::*;
use proptest::sample::Index;

use super::{Assumptions, Trace, TraceError, history, openb, philly, simple};

const CORPUS: [&str; 5] = [
    "submit,duration,workers,devices,kind,model,cpus,memory,workspace,user,priority,preemptible,max_time,name\n\
     10s,2h,2,8,ascend,910B*,96,256Gi,vision,ann,7,true,1d,resnet\n5s,90s,,0.5,,,,,,,,,,\n",
    "submit,duration\n2026-01-31T08:00:30Z,1m\n2026-01-31 08:00:00,1m\n",
    "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-01 00:00:10,60.5,1,60.5,6214e9\n2017-10-01 00:00:20,60.0,16,960.0,ee9e8c\n",
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n\
     late,6000,12288,1,460,,LS,Running,160,400,190\nfirst,1000,1024,2,1000,V100M16|V100M32,LS,Succeeded,100,130,100\n",
    "{\"danlu_history\":1,\"exported_at\":\"2026-01-02T00:00:00Z\",\"nodes\":[]}\n\
     {\"id\":1,\"owner\":\"ann\",\"submitted_at\":\"2026-01-01T00:02:00Z\",\"spec\":{\"command\":\"\",\"checkpoint\":\"ckpt\"},\
     \"attempts\":[{\"placed_at\":\"2026-01-01T00:03:00Z\",\"running_at\":\"2026-01-01T00:03:10Z\",\"ended_at\":\"2026-01-01T00:04:00Z\",\
     \"reason\":\"preempted\"}],\"ended_at\":\"2026-01-01T00:50:00Z\",\"outcome\":\"stopped\"}\n",
];

fn judge(text: &str, read: Result<Trace, TraceError>) {
    match read {
        Ok(trace) => {
            assert!(trace.jobs.len() < text.lines().count().max(1));
            let mut jobs = trace.jobs.iter();
            assert!(
                jobs.next().is_none_or(|job| job.submit_at == Span::default()),
                "times begin with the first"
            );
            assert!(trace.jobs.is_sorted_by_key(|job| job.submit_at));
        }
        Err(error) => assert!(error.to_string().len() < 2000, "{} bytes of refusal", error.to_string().len()),
    }
}

fn read_as_everything(text: &str) {
    let assumptions = Assumptions::default();
    judge(text, simple::read("t", text.as_bytes(), &assumptions));
    judge(text, history::read("t", text.as_bytes(), &assumptions));
    judge(text, philly::read("t", text.as_bytes(), 0.1, &assumptions));
    judge(text, openb::read("t", text.as_bytes(), Vec::new(), &assumptions));
    let _ = (openb::read_pods("t", text.as_bytes()), openb::read_nodes("t", text.as_bytes()));
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for read in [simple::read, history::read] {
            let _ = read("t", bytes.as_slice(), &Assumptions::default());
        }
        read_as_everything(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn rows_of_any_numbers_are_read_or_refused(
        which in 0..CORPUS.len(),
        cells in prop::collection::vec(
            "(|-?[0-9]{1,22}(\\.[0-9])?([smhd]|Gi|Ti)?|1e308|NaN|inf|-9999-01-01 00:00:00|9999-12-31T23:59:59Z|18446744073709551615s?|ascend|true|é)", 14,
        ),
    ) {
        let header = CORPUS[which].lines().next().unwrap_or_default();
        let row = cells[..header.split(',').count().min(cells.len())].join(",");
        read_as_everything(&format!("{header}\n{row}\n{row}\n"));
    }

    #[test]
    fn known_traces_with_any_damage_are_read_or_refused(
        which in 0..CORPUS.len(),
        damage in prop::collection::vec((any::<Index>(), 0..12usize, "([,\"\n:{}\\[\\]|. 0-9a-z-]|é|null|9999|18446744073709551615|1e999){0,4}"), 1..5),
    ) {
        let mut text: Vec<char> = CORPUS[which].chars().collect();
        for (at, cut, with) in damage {
            let from = at.index(text.len() + 1);
            let to = (from + cut).min(text.len());
            text.splice(from..to, with.chars());
        }
        read_as_everything(&text.into_iter().collect::<String>());
    }
}
