package telemetry

import "github.com/prometheus/client_golang/prometheus"

// metrics of what the gateway does. Those of calls have the names and labels that gRPC servers usually have, so that
// common dashboards and alerts fit.
type metrics struct {
	calls         *prometheus.CounterVec   // grpc_type, grpc_service, grpc_method, grpc_code
	callTime      *prometheus.HistogramVec // grpc_type, grpc_service, grpc_method
	connections   prometheus.Gauge
	preconditions *prometheus.CounterVec   // method, outcome
	storeTime     *prometheus.HistogramVec // operation, result
}

func newMetrics() metrics {
	return metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "grpc_server_handled_total", Help: "Calls that have ended, by their code.",
		}, []string{"grpc_type", "grpc_service", "grpc_method", "grpc_code"}),
		callTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "grpc_server_handling_seconds", Help: "How long calls took.",
			Buckets: []float64{.001, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}, []string{"grpc_type", "grpc_service", "grpc_method"}),
		connections: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "openshell_gateway_connections", Help: "Connections that are open.",
		}),
		preconditions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "openshell_gateway_preconditions_total", Help: "Conditional calls whose precondition was looked at, by what came of it.",
		}, []string{"method", "outcome"}),
		storeTime: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "openshell_gateway_store_seconds", Help: "How long operations of the store took; the result is failed when the database is at fault.",
			Buckets: []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"operation", "result"}),
	}
}

func (m metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.calls, m.callTime, m.connections, m.preconditions, m.storeTime}
}

// Outcome is what came of a precondition.
type Outcome string

// What can come of a precondition. A call that is refused before its sandbox is looked for has no outcome.
const (
	Matched          Outcome = "matched"
	IdentityMismatch Outcome = "identity_mismatch"
	VersionConflict  Outcome = "version_conflict"
	Absent           Outcome = "absent"
	Pending          Outcome = "pending"
)
