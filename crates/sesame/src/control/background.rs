//! The thread on which large rows are computed, and on which what they replace is freed.
//!
//! In: jobs of the engine, one at a time. Out: what came of them. It is one thread for all of them, so that the memory that one
//! job frees is used by the next, and it gives way to every other thread where there are fewer cores than work.

use std::panic::{AssertUnwindSafe, catch_unwind};

use engine::{Finished, Job, Replaced};
use tokio::sync::mpsc;
use tracing::error;

/// How much less of a busy core the thread gets than others, as `nice` has it.
const NICE: i32 = 10;

enum Task {
    Compute(Job),
    Free(Replaced),
}

/// The thread, once there is something for it to do. It ends with this.
#[derive(Default)]
pub(super) struct Background {
    channels: Option<(mpsc::UnboundedSender<Task>, mpsc::UnboundedReceiver<Option<Finished>>)>,
    is_busy: bool,
}

impl Background {
    /// Whether a row is being computed.
    pub fn is_busy(&self) -> bool {
        self.is_busy
    }

    /// Computes a row. One at a time.
    pub fn compute(&mut self, job: Job) {
        self.is_busy = true;
        self.send(Task::Compute(job));
    }

    /// Frees what a row was before.
    pub fn free(&mut self, replaced: Replaced) {
        self.send(Task::Free(replaced));
    }

    /// What came of the job, once it is done; nothing if it was lost. Never ends while there is none.
    pub async fn finished(&mut self) -> Option<Finished> {
        match &mut self.channels {
            Some((_, results)) if self.is_busy => {
                let result = results.recv().await.flatten();
                self.is_busy = false;
                result
            }
            _ => std::future::pending().await,
        }
    }

    fn send(&mut self, task: Task) {
        let (tasks, _) = self.channels.get_or_insert_with(|| {
            let (tasks, received) = mpsc::unbounded_channel();
            let (results, finished) = mpsc::unbounded_channel();
            let thread = std::thread::Builder::new().name("large-rows".to_owned());
            if let Err(error) = thread.spawn(move || run(received, &results)) {
                error!(%error, "failed to start the thread for large rows; they are computed by the control loop");
            }
            (tasks, finished)
        });
        // Without the thread the results end at once: what was sent is lost, and told as that.
        let _ = tasks.send(task);
    }
}

fn run(mut tasks: mpsc::UnboundedReceiver<Task>, results: &mpsc::UnboundedSender<Option<Finished>>) {
    // Where that is not allowed it is a thread like any other.
    let _ = rustix::process::setpriority_process(None, NICE);
    while let Some(task) = tasks.blocking_recv() {
        match task {
            Task::Compute(job) => {
                let finished = catch_unwind(AssertUnwindSafe(|| job.run())).ok();
                if results.send(finished).is_err() {
                    return;
                }
            }
            Task::Free(replaced) => drop(replaced),
        }
    }
}
