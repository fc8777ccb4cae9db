//! Envoy's runtime values: ours, then the server's, then what an operator sets by hand through the admin interface.

use envoy_api::envoy::config::bootstrap::v3::{LayeredRuntime, RuntimeLayer, runtime_layer};
use envoy_api::google::protobuf::{Struct, Value, value::Kind};

use super::over_ads;
use crate::name;

/// Regular expressions are checked for size before they are sent; Envoy's own limit of 100 would refuse a route that
/// people can write, so it only warns.
const VALUES: [(&str, f64); 2] =
    [("re2.max_program_size.error_level", 1_048_576.0), ("re2.max_program_size.warn_level", 1000.0)];

pub(super) fn layers() -> LayeredRuntime {
    let values = VALUES.map(|(key, value)| (key.to_owned(), Value { kind: Some(Kind::NumberValue(value)) }));
    LayeredRuntime {
        layers: vec![
            layer("static", runtime_layer::LayerSpecifier::StaticLayer(Struct { fields: values.into() })),
            layer(
                name::RUNTIME,
                runtime_layer::LayerSpecifier::RtdsLayer(runtime_layer::RtdsLayer {
                    name: name::RUNTIME.to_owned(),
                    rtds_config: Some(over_ads()),
                }),
            ),
            layer("admin", runtime_layer::LayerSpecifier::AdminLayer(runtime_layer::AdminLayer {})),
        ],
    }
}

fn layer(name: &str, specifier: runtime_layer::LayerSpecifier) -> RuntimeLayer {
    RuntimeLayer { name: name.to_owned(), layer_specifier: Some(specifier) }
}
