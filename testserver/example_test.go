package testserver_test

import (
	"fmt"
	"time"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

// A timer fires when the test moves the clock, without a wait.
func ExampleNewClock() {
	clock := testserver.NewClock()
	fired := make(chan bool)
	clock.AfterFunc(time.Hour, func() { close(fired) })
	clock.Advance(time.Hour)
	<-fired
	fmt.Println("an hour has passed")
	// Output: an hour has passed
}

func ExampleClock_AfterFunc() {
	clock := testserver.NewClock()
	stop := clock.AfterFunc(time.Hour, func() { fmt.Println("fired") })
	fmt.Println("stopped:", stop())
	clock.Advance(time.Hour)
	// Output: stopped: true
}

func ExampleClock_Now() {
	clock := testserver.NewClock()
	before := clock.Now()
	clock.Advance(24 * time.Hour)
	fmt.Println(clock.Now().Sub(before) >= 24*time.Hour)
	// Output: true
}

// Start(t, testserver.WithWorkloads("nodes=3", "zones=3")) starts a server with three simulated nodes.
func ExampleWithWorkloads() {
	var config bowsprit.Config
	testserver.WithWorkloads("nodes=3", "zones=3")(&config)
	fmt.Println(config.Workloads.Simulate)
	// Output: map[nodes:3 zones:3]
}

// WithSimulation takes the settings as a struct.
func ExampleWithSimulation() {
	var config bowsprit.Config
	nodes := 3
	testserver.WithSimulation(bowsprit.Simulation{Nodes: &nodes, Zones: 3})(&config)
	fmt.Println(*config.Workloads.Simulation.Nodes, config.Workloads.Simulation.Zones)
	// Output: 3 3
}

// Start(t, testserver.WithClock(clock)) starts a server with a clock that the test moves.
func ExampleWithClock() {
	clock := testserver.NewClock()
	var config bowsprit.Config
	testserver.WithClock(clock)(&config)
	clock.Advance(365 * 24 * time.Hour)
	fmt.Println(config.Clock.Now().After(time.Now().AddDate(0, 11, 0)))
	// Output: true
}
