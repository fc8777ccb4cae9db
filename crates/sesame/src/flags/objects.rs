//! What the commands that read manifests from files are told about objects: `run` and `lint`.

use std::path::PathBuf;

use pipeline::Settings;

use super::{ForeignProtection, Names, emissary::EmissaryFlags, names};

/// Flags about objects.
#[derive(Debug, clap::Args)]
pub struct ObjectFlags {
    /// Path of a configuration file, as of `sesame serve`; its settings for proxies and objects apply
    #[arg(long, short = 'c', value_name = "FILE")]
    pub config_path: Option<PathBuf>,
    /// Comma-separated list of ingress classes to serve
    #[arg(long, value_name = "NAMES", default_value = "", hide_default_value = true, value_parser = names)]
    ingress_class_name: Names,
    /// How to handle objects with protecting annotations of other ingress controllers, such as access lists
    #[arg(long, value_name = "WHAT", value_enum, default_value = "warn")]
    foreign_protection: ForeignProtection,
    /// Instance ID of Emissary objects to read; those without ambassador_id belong to `default`. With --emissary-ingress-class also of
    /// Ingresses and IngressClasses
    #[arg(long, env = "AMBASSADOR_ID", value_name = "ID", default_value = super::AMBASSADOR_ID)]
    ambassador_id: String,
    #[command(flatten)]
    emissary: EmissaryFlags,
    /// Allow Services of type ExternalName
    #[arg(long)]
    enable_external_name_service: bool,
}

/// Whether a TLS host whose Secret does not exist gets a certificate that Sesame signs itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelfSigned {
    /// It does.
    Allowed,
    /// It has no TLS, and that is an error.
    Refused,
}

impl ObjectFlags {
    /// Sets what they say, and what holds for all manifests that are read from files: a Service may list its endpoints, Gateways of
    /// class `sesame` need no GatewayClass, and an object of another class is told so, since nobody else is there to serve it.
    pub fn apply(&self, settings: &mut Settings, self_signed: SelfSigned) {
        let self_signed = self_signed == SelfSigned::Allowed;
        settings.resolve.external_names |= self.enable_external_name_service;
        settings.resolve.listed_endpoints = true;
        settings.ingress.class_names = self.ingress_class_name.to_vec();
        settings.ingress.self_signed = self_signed;
        settings.ingress.foreign_protection = self.foreign_protection.into();
        settings.ingress.report_other_classes = true;
        settings.http_proxy.class_names.clone_from(&settings.ingress.class_names);
        settings.http_proxy.self_signed = self_signed;
        settings.http_proxy.foreign_protection = self.foreign_protection.into();
        settings.http_proxy.report_other_classes = true;
        settings.http_proxy.open_extensions.namespace = Some("projectsesame".into());
        settings.emissary.ambassador_id = super::ambassador_id(&self.ambassador_id);
        settings.emissary.self_signed = self_signed;
        settings.emissary.foreign_protection = self.foreign_protection.into();
        self.emissary.apply(settings);
        settings.gateway.foreign_protection = self.foreign_protection.into();
        settings.gateway.implied_class = Some("sesame".into());
        settings.gateway.self_signed = self_signed;
        settings.gateway.report_other_classes = true;
    }
}
