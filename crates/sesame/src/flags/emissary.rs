//! How far objects of Emissary are trusted, and what of Emissary is served on request only.

use clap::ValueEnum;
use pipeline::{Settings, settings::Scripts};

/// Flags about objects of Emissary.
#[derive(Clone, Debug, clap::Args)]
pub struct EmissaryFlags {
    /// Let objects of Emissary refer to Secrets, TLSContexts and resolvers of any namespace without a grant, as Emissary does
    #[arg(long)]
    emissary_cross_namespace: bool,
    /// What to do with lua_scripts of the Module
    #[arg(long, value_name = "WHAT", value_enum, default_value = "refuse")]
    emissary_lua: Lua,
    /// Serve Ingresses of class ambassador, and of IngressClasses whose controller is getambassador.io/ingress-controller
    #[arg(long)]
    emissary_ingress_class: bool,
}

/// What becomes of scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Lua {
    /// Mappings answer 503 and the Module says why
    Refuse,
    /// Scripts are reported and not run
    Ignore,
    /// Scripts of Sesame's own namespace are run; others as with refuse
    Run,
}

impl EmissaryFlags {
    /// Sets what they say.
    pub fn apply(&self, settings: &mut Settings) {
        settings.emissary.cross_namespace = self.emissary_cross_namespace;
        settings.emissary.scripts = match self.emissary_lua {
            Lua::Refuse => Scripts::Refuse,
            Lua::Ignore => Scripts::Ignore,
            Lua::Run => Scripts::Run,
        };
        settings.ingress.emissary_class = self.emissary_ingress_class;
    }
}
