//! Limits on the whole process: what Envoy does before it would run out of memory or file handles.

use std::time::Duration;

use envoy_api::envoy::config::overload::v3 as api;
use envoy_api::envoy::extensions::resource_monitors::downstream_connections::v3::DownstreamConnectionsConfig;
use envoy_api::envoy::extensions::resource_monitors::fixed_heap::v3::FixedHeapConfig;
use envoy_api::{Name, any};

const HEAP: &str = "envoy.resource_monitors.fixed_heap";
const CONNECTIONS: &str = "envoy.resource_monitors.global_downstream_max_connections";

/// How often pressure is looked at.
const REFRESH: Duration = Duration::from_millis(250);

/// Limits on the whole process; none unless set.
#[derive(Clone, Copy, Debug, Default)]
pub struct Overload {
    /// Bytes of heap: at 95 % unused memory is given back, at 98 % new requests are refused with 503.
    pub max_heap: Option<u64>,
    /// Connections from clients over all listeners; more are closed as they come.
    pub max_downstream_connections: Option<u32>,
}

pub(super) fn message(limits: &Overload) -> Option<api::OverloadManager> {
    let mut manager = api::OverloadManager { refresh_interval: Some(REFRESH.into()), ..Default::default() };
    if let Some(max_heap_size_bytes) = limits.max_heap {
        let heap = FixedHeapConfig { max_heap_size_bytes, ..Default::default() };
        manager.resource_monitors.push(monitor(HEAP, &heap));
        manager.actions.push(above("envoy.overload_actions.shrink_heap", HEAP, 0.95));
        manager.actions.push(above("envoy.overload_actions.stop_accepting_requests", HEAP, 0.98));
    }
    if let Some(limit) = limits.max_downstream_connections {
        let connections = DownstreamConnectionsConfig { max_active_downstream_connections: limit.into() };
        manager.resource_monitors.push(monitor(CONNECTIONS, &connections));
    }
    (!manager.resource_monitors.is_empty()).then_some(manager)
}

fn monitor<M: Name>(name: &str, config: &M) -> api::ResourceMonitor {
    api::ResourceMonitor {
        name: name.to_owned(),
        config_type: Some(api::resource_monitor::ConfigType::TypedConfig(any(config))),
    }
}

fn above(action: &str, monitor: &str, value: f64) -> api::OverloadAction {
    api::OverloadAction {
        name: action.to_owned(),
        triggers: vec![api::Trigger {
            name: monitor.to_owned(),
            trigger_oneof: Some(api::trigger::TriggerOneof::Threshold(api::ThresholdTrigger { value })),
        }],
        ..Default::default()
    }
}
