// Package chaos_test has a second client delete, replace, stop, start and attach at random what Terraform and OpenTofu
// plan, apply and destroy in a loop. Answers of the gateway are lost, and commands interrupted and killed, now and then. After
// every command no stranger was harmed or adopted, nothing was forgotten, and the state fits the gateway.
//
// `make test` runs 25 rounds and `make soak` 500. A failure prints the seed, with which the same commands and actions come
// in the same order; how they meet depends on the machine.
package chaos_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/openshell-iac/terraform-provider-openshell/internal/acceptance/cli"
	"github.com/openshell-iac/terraform-provider-openshell/internal/gateway/gatewaytest"
)

// Variables that say how long and with which seed to run.
const (
	envRounds = "OPENSHELL_CHAOS_ROUNDS"
	envSeed   = "OPENSHELL_CHAOS_SEED"
)

const (
	defaultRounds = 25
	// loops run beside each other, each with its own gateway.
	loops = 2
	// convergeEvery is after how many rounds of a loop the second client leaves for a while.
	convergeEvery = 8
)

func TestMain(m *testing.M) { os.Exit(cli.Main(m)) }

func TestO26SecondClientAtRandom(t *testing.T) {
	t.Parallel()
	cli.Require(t)
	clis, err := cli.Find()
	if err != nil {
		t.Fatal(err)
	}
	rounds := fromEnv(t, envRounds, defaultRounds)
	seed := fromEnv(t, envSeed, uint64(time.Now().UnixNano())) //nolint:gosec // any number will do
	t.Logf("%s=%d %s=%d", envSeed, seed, envRounds, rounds)
	for i := range uint64(loops) {
		c := clis[int(i)%len(clis)] //nolint:gosec // small
		t.Run(fmt.Sprintf("%d on %s", i+1, c.Product), func(t *testing.T) {
			t.Parallel()
			g := gatewaytest.Start(t)
			l := &loop{
				t: t, r: rand.New(rand.NewPCG(seed, i)), g: g, w: cli.InTest(t, c), //nolint:gosec // not for secrets
				second: newSecondClient(t, rand.New(rand.NewPCG(seed, i+loops)), g), //nolint:gosec // not for secrets
			}
			l.write()
			for round := 1; round <= int((rounds+loops-1)/loops) && !t.Failed(); round++ { //nolint:gosec // small
				l.logf("round %d", round)
				l.round()
				if round%convergeEvery == 0 {
					l.converge()
				}
			}
			l.end()
			t.Logf("%v", l.seen)
		})
	}
}

func fromEnv(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		t.Fatalf("%s must be a whole number: %v", name, err)
	}
	return n
}
