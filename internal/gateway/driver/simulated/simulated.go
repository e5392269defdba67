// Package simulated is a compute driver that runs nothing. It keeps no state either: how a sandbox does follows from its
// own configuration and from how long ago its step began, so that a gateway that restarts finds everything as it was.
//
// A sandbox is steered by the block `simulated` of its template.driver_config. See [Config] for the keys.
package simulated

import (
	"context"
	"time"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
)

// Name of the driver, and of its block in driver_config.
const Name = "simulated"

// Driver implements [driver.Driver].
type Driver struct{}

var _ driver.Driver = Driver{}

// Info implements [driver.Driver].
func (Driver) Info() *openshellv1.ComputeDriverInfo {
	return &openshellv1.ComputeDriverInfo{
		Name:         Name,
		Capabilities: &openshellv1.ComputeDriverCapabilities{DriverName: Name, DriverVersion: "1"},
	}
}

// Validate implements [driver.Driver].
func (Driver) Validate(spec *openshellv1.SandboxSpec) error {
	_, err := parse(spec)
	return err
}

// Create blocks for create_takes and then refuses with create_error, if there is one.
func (Driver) Create(ctx context.Context, instance driver.Instance) error {
	config, err := parse(instance.Spec)
	if err != nil {
		return err
	}
	if err := sleep(ctx, config.CreateTakes-time.Since(instance.Since)); err != nil {
		return err
	}
	if config.CreateError != "" {
		return &driver.Refusal{Message: config.CreateError}
	}
	return nil
}

// Start implements [driver.Driver].
func (Driver) Start(ctx context.Context, _ driver.Instance) error { return ctx.Err() }

// Stop implements [driver.Driver].
func (Driver) Stop(ctx context.Context, _ driver.Instance) error { return ctx.Err() }

// Delete is done after delete_after. With delete_error it refuses: at once, or after delete_after if that is set too.
func (Driver) Delete(_ context.Context, instance driver.Instance) (driver.Deletion, error) {
	config, err := parse(instance.Spec)
	if err != nil {
		return driver.Deletion{}, err
	}
	left := config.deleteAfter() - time.Since(instance.Since)
	switch {
	case left > 0:
		return driver.Deletion{Next: left}, nil
	case config.DeleteError != "":
		return driver.Deletion{}, &driver.Refusal{Message: config.DeleteError}
	default:
		return driver.Deletion{Gone: true}, nil
	}
}

// Observe implements [driver.Driver].
func (Driver) Observe(_ context.Context, instance driver.Instance) (driver.Observation, error) {
	config, err := parse(instance.Spec)
	if err != nil {
		return driver.Observation{}, err
	}
	if config.NeverReady {
		return driver.Observation{State: driver.Starting}, nil
	}
	elapsed := time.Since(instance.Since)
	if left := config.readyAfter() - elapsed; left > 0 {
		return driver.Observation{State: driver.Starting, Next: left}, nil
	}
	if config.ExitAfter == nil {
		return driver.Observation{State: driver.Running}, nil
	}
	if left := config.readyAfter() + *config.ExitAfter - elapsed; left > 0 {
		return driver.Observation{State: driver.Running, Next: left}, nil
	}
	return driver.Observation{State: driver.Exited, ExitCode: config.ExitCode}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
