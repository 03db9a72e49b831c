package config

import "github.com/bowsprit/bowsprit/internal/workload/node"

// Workloads configures the simulation of nodes, a scheduler, kubelets and controllers. It runs no containers.
type Workloads struct {
	// Simulate switches the simulation on if it is not nil. Keys are nodes (how many the server makes, 1; 0 if clients
	// make them), name (node-%d, with their number from 0), zones (their number, none), and the resources of each node:
	// cpu (8), memory (32Gi) and pods (110). stages names files or folders of kwok's Stages, separated as in PATH.
	Simulate map[string]string
}

func (c *Workloads) settings() []Setting {
	help := "simulate workloads where nothing runs (nodes=3,cpu=16); keys: nodes, name, zones, cpu, memory, pods, stages"
	return []Setting{{Name: "simulate", Help: help, Value: &c.Simulate, Form: Quoted, Only: Serve}}
}

func (c *Workloads) validate(p *problems) {
	for _, err := range node.Settings(c.Simulate).Validate() {
		p.add("--simulate: %w", err)
	}
}
