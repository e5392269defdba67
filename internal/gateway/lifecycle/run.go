package lifecycle

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	openshellv1 "github.com/openshell-iac/terraform-provider-openshell/internal/api/openshell/v1"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/driver"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/store"
)

// Back-off of restarts by policy (contract, phases and lifecycle).
const (
	firstBackoff   = time.Second
	longestBackoff = 3 * time.Minute
	settledAfter   = 10 * time.Second // of running; then the back-off starts anew
)

// observe asks the driver how a sandbox does that it has taken on.
func (m *Manager) observe(ctx context.Context, s store.Sandbox) error {
	seen, err := m.driver.Observe(ctx, instance(s))
	if err != nil {
		m.reschedule(ctx, s, retryAfter)
		return err
	}
	switch {
	case seen.State == driver.Exited:
		_, err = m.change(ctx, s, during(s.Operation.ID, exited(seen.ExitCode, newID())))
	case seen.State == driver.Running && s.Phase() != ready:
		_, err = m.change(ctx, s, during(s.Operation.ID, becameReady(seen.Next, newID(), newID())))
	case seen.Next > 0:
		m.reschedule(ctx, s, seen.Next)
	default:
		m.reschedule(ctx, s, lease)
	}
	return err
}

// becameReady is the step into READY. An end that the driver foresees keeps an operation going.
func becameReady(next time.Duration, operationID, processID string) store.Decide {
	return func(current store.Sandbox, now time.Time) (store.Change, error) {
		return rewrite(current, func(s *store.Sandbox) {
			setPhase(s.Status, ready, reasonReady, "", now)
			s.Status.MainProcessInstanceId = processID
			s.Status.MainProcessStartedTime = timestamppb.New(now)
			s.Status.ConfigurationActivated = new(true)
			if s.Status.GetConfigurationAdmission() == nil {
				s.Status.ConfigurationAdmission = &openshellv1.SandboxConfigurationAdmission{}
			}
			s.Status.ConfigurationAdmission.InstanceId = processID
			loadPolicy(s.Status)
			s.Operation = store.Operation{}
			if next > 0 {
				s.Operation = store.Operation{
					ID: operationID, Kind: store.OperationRun, Since: current.Operation.Since,
					DueAt: now.Add(next), Restarts: current.Operation.Restarts,
				}
			}
		})
	}
}

// exited is what follows the end of the main process.
func exited(code int32, operationID string) store.Decide {
	return func(current store.Sandbox, now time.Time) (store.Change, error) {
		return rewrite(current, func(s *store.Sandbox) {
			if restarts(s.Spec.GetRestartPolicy(), code) {
				n := current.Operation.Restarts
				if began := s.Status.GetMainProcessStartedTime(); s.Phase() == ready && now.Sub(began.AsTime()) >= settledAfter {
					n = 0
				}
				s.Status.RestartCount++
				backOff(s, n, operationID, fmt.Sprintf("The main process ended with exit code %d.", code), now)
				return
			}
			s.Status.ExitCode = &code
			s.Operation = store.Operation{}
			if ephemeral(*s) {
				s.Operation = store.Operation{ID: operationID, Kind: store.OperationRetire, Since: now, DueAt: now.Add(retireAfter)}
			}
			if code == 0 {
				setPhase(s.Status, completed, reasonMainProcessCompleted, "The main process ended.", now)
			} else {
				setPhase(s.Status, failed, reasonMainProcessFailed, fmt.Sprintf("The main process ended with exit code %d.", code), now)
			}
		})
	}
}

func restarts(policy openshellv1.SandboxRestartPolicy, code int32) bool {
	switch policy {
	case openshellv1.SandboxRestartPolicy_SANDBOX_RESTART_POLICY_ALWAYS:
		return true
	case openshellv1.SandboxRestartPolicy_SANDBOX_RESTART_POLICY_ON_FAILURE:
		return code != 0
	default:
		return false
	}
}

// backOff has a sandbox started again, after n restarts that followed each other at once.
func backOff(s *store.Sandbox, n uint32, operationID, why string, now time.Time) {
	at := now.Add(backoffOf(n))
	setPhase(s.Status, starting, reasonRestarting, why+" It is started again by its restart policy.", now)
	s.Status.NextRestartTime = timestamppb.New(at)
	s.Operation = store.Operation{ID: operationID, Kind: store.OperationRestart, Since: now, DueAt: at, Restarts: n + 1}
}

func backoffOf(n uint32) time.Duration {
	if n == 0 {
		return 0
	}
	return min(firstBackoff<<min(n-1, 16), longestBackoff)
}

// waiting says whether a restart by policy has not begun yet.
func waiting(s store.Sandbox) bool {
	return s.Operation.Kind == store.OperationRestart && s.Status.GetNextRestartTime() != nil
}

// restart begins a restart by policy whose back-off is over. When the driver refuses, it is tried again after the next.
func (m *Manager) restart(ctx context.Context, s store.Sandbox) error {
	if left := time.Until(s.Status.GetNextRestartTime().AsTime()); left > 0 {
		m.reschedule(ctx, s, left)
		return nil
	}
	operationID := newID()
	s, err := m.change(ctx, s, during(s.Operation.ID, restartBegan(operationID)))
	if err != nil || s.Operation.ID != operationID {
		return err
	}
	_, err = m.start(ctx, s)
	return err
}

func restartBegan(operationID string) store.Decide {
	return func(current store.Sandbox, now time.Time) (store.Change, error) {
		return rewrite(current, func(s *store.Sandbox) {
			s.Status.NextRestartTime = nil
			s.Operation.ID, s.Operation.Since, s.Operation.DueAt = operationID, now, now.Add(lease)
			setPending(s, true)
		})
	}
}

func restartRefused(operationID string) store.Decide {
	return func(current store.Sandbox, now time.Time) (store.Change, error) {
		return rewrite(current, func(s *store.Sandbox) {
			setPending(s, false)
			backOff(s, current.Operation.Restarts, operationID, "The compute driver could not start it.", now)
		})
	}
}
