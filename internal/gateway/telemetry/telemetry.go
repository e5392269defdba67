// Package telemetry is what an operator sees of a gateway: a log line and metrics for every call, metrics of the store
// and of the work that is due in it, and whether the process is alive and ready.
//
// Calls are observed by a [stats.Handler], because that sees even those that gRPC refuses before any interceptor runs,
// such as too long a message. Of requests and replies it takes names and ids only, so that neither an environment nor a
// credential can reach the log, and no label of a metric has a value that a client can make up.
package telemetry

import (
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"google.golang.org/grpc"
)

// Telemetry observes one gateway.
type Telemetry struct {
	log      *slog.Logger
	methods  map[string]method
	registry *prometheus.Registry
	metrics  metrics
}

// New makes a telemetry that writes to a log. The version is that of the build.
func New(log *slog.Logger, version string) *Telemetry {
	t := &Telemetry{log: log, registry: prometheus.NewRegistry(), metrics: newMetrics()}
	t.registry.MustRegister(t.metrics.all()...)
	t.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "openshell_gateway_build_info", Help: "Always 1; the label has the version.",
			ConstLabels: prometheus.Labels{"version": version},
		}, func() float64 { return 1 }),
	)
	return t
}

// method is how the metrics name a method.
type method struct{ kind, service, name string }

// unknown stands for every method that the gateway does not have, since callers can invent as many as they like.
var unknown = method{kind: "unary", service: "unknown", name: "unknown"}

// Know tells which methods there are, before the first call. All others are counted together.
func (t *Telemetry) Know(services map[string]grpc.ServiceInfo) {
	t.methods = map[string]method{}
	for _, service := range slices.Sorted(maps.Keys(services)) {
		for _, m := range services[service].Methods {
			t.methods["/"+service+"/"+m.Name] = method{kind: kind(m), service: service, name: m.Name}
		}
	}
}

// kind is what the label grpc_type of gRPC's usual metrics says.
func kind(m grpc.MethodInfo) string {
	switch {
	case m.IsClientStream && m.IsServerStream:
		return "bidi_stream"
	case m.IsClientStream:
		return "client_stream"
	case m.IsServerStream:
		return "server_stream"
	default:
		return "unary"
	}
}

func (t *Telemetry) method(fullName string) method {
	if m, ok := t.methods[fullName]; ok {
		return m
	}
	return unknown
}

// Bounds of a scrape, which anybody may ask for who reaches the port.
const (
	scrapes       = 4 // at the same time
	scrapeTimeout = 10 * time.Second
)

// Metrics serves the metrics in the formats of Prometheus.
func (t *Telemetry) Metrics() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError,
		ErrorLog:            slog.NewLogLogger(t.log.Handler(), slog.LevelWarn),
		MaxRequestsInFlight: scrapes,
		Timeout:             scrapeTimeout,
	})
}
