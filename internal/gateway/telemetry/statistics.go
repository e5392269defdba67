package telemetry

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// statisticsTimeout bounds how long a scrape waits for the store, and is well below what a scrape may take.
const statisticsTimeout = 5 * time.Second

var (
	storeUp = prometheus.NewDesc("openshell_gateway_store_up",
		"1 if the database has just been asked what is in it, and has answered.", nil, nil)
	sandboxes = prometheus.NewDesc("openshell_gateway_sandboxes",
		"Sandboxes in the database, by phase.", []string{"phase"}, nil)
	overdue = prometheus.NewDesc("openshell_gateway_operations_overdue",
		"Operations in the database that have fallen due and have not been taken up.", nil, nil)
	longestOverdue = prometheus.NewDesc("openshell_gateway_operations_overdue_seconds",
		"How long the first of them has been waiting.", nil, nil)
)

// statistics is a [prometheus.Collector] of what is in the store, counted when it is asked.
type statistics struct {
	store store.Counted
	log   *slog.Logger
}

// Describe implements [prometheus.Collector].
func (s statistics) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{storeUp, sandboxes, overdue, longestOverdue} {
		descriptions <- d
	}
}

// Collect implements [prometheus.Collector].
func (s statistics) Collect(metrics chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		metrics <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), statisticsTimeout)
	defer cancel()
	counted, err := s.store.Statistics(ctx)
	if err != nil {
		s.log.WarnContext(ctx, "cannot count what is in the store", "error", err)
		gauge(storeUp, 0)
		return
	}
	gauge(storeUp, 1)
	gauge(overdue, float64(counted.Overdue))
	gauge(longestOverdue, counted.LongestOverdue.Seconds())
	byPhase := map[string]int{} // a newer gateway on the database may know more phases than this one
	for phase := range openshellv1.SandboxPhase_name {
		byPhase[phaseName(openshellv1.SandboxPhase(phase))] = 0
	}
	for phase, n := range counted.Sandboxes {
		byPhase[phaseName(phase)] += n
	}
	for phase, n := range byPhase {
		gauge(sandboxes, float64(n), phase)
	}
}

func phaseName(phase openshellv1.SandboxPhase) string {
	return strings.TrimPrefix(phase.String(), "SANDBOX_PHASE_")
}
