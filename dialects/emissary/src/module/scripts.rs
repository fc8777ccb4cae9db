//! `lua_scripts` of the Module: whether it is run, and what is in the way.
//!
//! A script can do anything in the proxies of everybody: it is run only on request of the operator, and only from the namespace of
//! Sesame. What a script keeps away does not pass without it, so a script that is not run closes all Mappings, unless the operator has it
//! ignored.

use crate::{Problem, Problems, Scripts, Settings};
use kinds::emissary::module::ModuleSettings;
use model::{Code, ObjectRef};
use std::sync::Arc;

/// The key.
pub const KEY: &str = "lua_scripts";

/// The most bytes of a script: every port has it.
const MOST_BYTES: usize = 64 * 1024;

/// What becomes of the scripts of a Module.
pub enum Read {
    /// There are none.
    None,
    /// They are run.
    Run(Arc<str>),
    /// They are not run, and nothing else.
    Ignored,
    /// They are not run, and Mappings answer 503, for this reason.
    Refused(String),
}

/// Reads them.
pub fn read(module: &ObjectRef, written: &ModuleSettings, settings: &Settings) -> Read {
    let text = match written.lua_scripts.ok() {
        Some(text) => text.as_deref().filter(|text| !text.is_empty()),
        None if settings.scripts == Scripts::Ignore => return Read::Ignored,
        None => return Read::Refused("it cannot be read".to_owned()),
    };
    let Some(text) = text else { return Read::None };
    match settings.scripts {
        Scripts::Ignore => Read::Ignored,
        Scripts::Refuse => Read::Refused("scripts are not run; --emissary-lua=ignore serves without them".to_owned()),
        Scripts::Run if *module.namespace != *settings.namespace => {
            Read::Refused(format!("scripts are run from namespace {} alone", settings.namespace))
        }
        Scripts::Run if text.len() > MOST_BYTES => {
            Read::Refused(format!("a script has at most {} KiB", MOST_BYTES / 1024))
        }
        Scripts::Run => Read::Run(text.into()),
    }
}

/// Tells what is not run.
pub fn report(module: &ObjectRef, written: &ModuleSettings, settings: &Settings, problems: &mut Problems<'_>) {
    let why = match read(module, written, settings) {
        Read::None | Read::Run(_) => return,
        Read::Ignored => "scripts are not run".to_owned(),
        Read::Refused(why) => format!("{why}; all Mappings answer 503"),
    };
    problems.add(Problem::new(Code::EmissaryNotServed, KEY, why));
}
