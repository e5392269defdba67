package simulated_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver/simulated"
)

func spec(t *testing.T, driverConfig map[string]any) *openshellv1.SandboxSpec {
	t.Helper()
	config, err := structpb.NewStruct(driverConfig)
	if err != nil {
		t.Fatal(err)
	}
	return &openshellv1.SandboxSpec{Template: &openshellv1.SandboxTemplate{DriverConfig: config}}
}

func instance(t *testing.T, keys map[string]any) driver.Instance {
	t.Helper()
	return driver.Instance{ID: "a", Spec: spec(t, map[string]any{"simulated": keys}), Since: time.Now()}
}

func TestValidate(t *testing.T) {
	d := simulated.Driver{}
	for _, good := range []map[string]any{
		nil, {}, {"simulated": map[string]any{}}, {"docker": "whatever"},
		{"simulated": map[string]any{
			"create_takes": "1s", "create_error": "x", "ready_after": "0s", "never_ready": false, "exit_after": "1h2m3.5s",
			"exit_code": 255, "delete_after": "1ms", "delete_error": "y",
		}},
	} {
		if err := d.Validate(spec(t, good)); err != nil {
			t.Errorf("%v: %v", good, err)
		}
	}
	if err := d.Validate(nil); err != nil {
		t.Error(err)
	}
	const block = "template.driver_config.simulated"
	for field, bad := range map[string][]any{
		block:                   {"text", 1, true, []any{}},
		block + ".ready_afer":   {map[string]any{"ready_afer": "1s"}},
		block + ".ready_after":  {map[string]any{"ready_after": 5}, map[string]any{"ready_after": "soon"}, map[string]any{"ready_after": "-1s"}, map[string]any{"ready_after": ""}},
		block + ".create_takes": {map[string]any{"create_takes": nil}},
		block + ".delete_after": {map[string]any{"delete_after": "5"}},
		block + ".exit_after":   {map[string]any{"exit_after": map[string]any{}}},
		block + ".create_error": {map[string]any{"create_error": ""}, map[string]any{"create_error": 1}},
		block + ".delete_error": {map[string]any{"delete_error": true}},
		block + ".never_ready":  {map[string]any{"never_ready": "yes"}, map[string]any{"never_ready": 1}},
		block + ".exit_code": {
			map[string]any{"exit_after": "1s", "exit_code": 256}, map[string]any{"exit_after": "1s", "exit_code": -1},
			map[string]any{"exit_after": "1s", "exit_code": 1.5}, map[string]any{"exit_after": "1s", "exit_code": "1"}, map[string]any{"exit_code": 1},
		},
	} {
		for _, value := range bad {
			err := d.Validate(spec(t, map[string]any{"simulated": value}))
			var invalid *driver.InvalidError
			if !errors.As(err, &invalid) || invalid.Field != field {
				t.Errorf("%v: %v, want a problem of %s", value, err, field)
			}
		}
	}
}

func TestCreate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		i := instance(t, map[string]any{"create_takes": "10s"})
		if err := (simulated.Driver{}).Create(t.Context(), i); err != nil || time.Since(begin) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		// Made again in the middle, by another process, it takes what is left.
		i.Since = time.Now().Add(-7 * time.Second)
		begin = time.Now()
		if err := (simulated.Driver{}).Create(t.Context(), i); err != nil || time.Since(begin) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		i.Since = time.Now()
		if err := (simulated.Driver{}).Create(ctx, i); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		err := (simulated.Driver{}).Create(t.Context(), instance(t, map[string]any{"create_error": "no such image"}))
		var refusal *driver.Refusal
		if !errors.As(err, &refusal) || refusal.Message != "no such image" {
			t.Error(err)
		}
	})
}

func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := func(i driver.Instance, elapsed time.Duration) driver.Observation {
			t.Helper()
			i.Since = time.Now().Add(-elapsed)
			seen, err := (simulated.Driver{}).Observe(t.Context(), i)
			if err != nil {
				t.Fatal(err)
			}
			return seen
		}
		for _, tc := range []struct {
			keys    map[string]any
			elapsed time.Duration
			want    driver.Observation
		}{
			{nil, 0, driver.Observation{State: driver.Starting, Next: 50 * time.Millisecond}},
			{nil, 50 * time.Millisecond, driver.Observation{State: driver.Running}},
			{map[string]any{"ready_after": "0s"}, 0, driver.Observation{State: driver.Running}},
			{map[string]any{"never_ready": true}, time.Hour, driver.Observation{State: driver.Starting}},
			{map[string]any{"ready_after": "1s", "exit_after": "2s", "exit_code": 3}, 999 * time.Millisecond, driver.Observation{State: driver.Starting, Next: time.Millisecond}},
			{map[string]any{"ready_after": "1s", "exit_after": "2s", "exit_code": 3}, time.Second, driver.Observation{State: driver.Running, Next: 2 * time.Second}},
			{map[string]any{"ready_after": "1s", "exit_after": "2s", "exit_code": 3}, 3 * time.Second, driver.Observation{State: driver.Exited, ExitCode: 3}},
			{map[string]any{"exit_after": "0s"}, time.Second, driver.Observation{State: driver.Exited}},
		} {
			if got := at(instance(t, tc.keys), tc.elapsed); got != tc.want {
				t.Errorf("%v after %v: %+v, want %+v", tc.keys, tc.elapsed, got, tc.want)
			}
		}
	})
}

func TestDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tc := range []struct {
			keys    map[string]any
			elapsed time.Duration
			want    driver.Deletion
			refused bool
		}{
			{nil, 0, driver.Deletion{Next: 50 * time.Millisecond}, false},
			{nil, 50 * time.Millisecond, driver.Deletion{Gone: true}, false},
			{map[string]any{"delete_after": "0s"}, 0, driver.Deletion{Gone: true}, false},
			{map[string]any{"delete_after": "20s"}, 5 * time.Second, driver.Deletion{Next: 15 * time.Second}, false},
			{map[string]any{"delete_error": "no"}, 0, driver.Deletion{}, true},
			{map[string]any{"delete_error": "no", "delete_after": "1s"}, 0, driver.Deletion{Next: time.Second}, false},
			{map[string]any{"delete_error": "no", "delete_after": "1s"}, time.Second, driver.Deletion{}, true},
		} {
			i := instance(t, tc.keys)
			i.Since = time.Now().Add(-tc.elapsed)
			got, err := (simulated.Driver{}).Delete(t.Context(), i)
			var refusal *driver.Refusal
			if got != tc.want || errors.As(err, &refusal) != tc.refused || (err != nil) != tc.refused {
				t.Errorf("%v after %v: %+v, %v", tc.keys, tc.elapsed, got, err)
			}
		}
	})
}
