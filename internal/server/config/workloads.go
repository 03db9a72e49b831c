package config

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/bowsprit/bowsprit/internal/object/quantity"
	"github.com/bowsprit/bowsprit/internal/workload/stage"
)

// Workloads configures the simulation of nodes, a scheduler, kubelets and controllers. It runs no containers.
type Workloads struct {
	// Simulation switches the simulation on if it is not nil.
	Simulation *Simulation
	// Simulate is the form of Simulation for flags, and switches the simulation on likewise. Keys are nodes, name,
	// zones, cpu, memory and pods, with the defaults of Simulation. stages names files or folders of kwok's Stages,
	// separated as in PATH. Set one of the two fields.
	Simulate map[string]string
	// LocalPorts are ports of this machine that may stand for ports of simulated pods. A pod names one in an
	// annotation, and clients that reach the pod then reach the program that listens there. The ports of the server and
	// of its etcd are refused.
	LocalPorts []string
	// AllowLocalPods lets users with the right to create deployments/localpod or statefulsets/localpod be the pod of
	// such a workload with a program on their machine (bowsprit run). The server then also runs the
	// controllers of endpoints.
	AllowLocalPods bool
}

// Simulation configures simulated nodes. The zero value is one node, node-0.
type Simulation struct {
	// Nodes is the number of nodes that the server makes, 1 if nil. With 0 clients make them.
	Nodes *int
	// Name is the name of a node, with %d for its number from 0; "node-%d" if empty.
	Name string
	// Zones is the number of zones among which the nodes are distributed; 0 means no zones.
	Zones int
	// CPU, Memory and Pods are the resources of each node: 8, 32Gi and 110 if zero or nil.
	CPU, Memory resource.Quantity
	Pods        *int // see CPU
	// Stages names files or folders of kwok's Stages.
	Stages []string
}

// The defaults of simulated nodes.
const (
	defaultNodes      = 1
	defaultNodeName   = "node-%d"
	defaultNodeCPU    = "8"
	defaultNodeMemory = "32Gi"
	defaultNodePods   = 110
)

// mostNodes bounds the numbers of a simulation.
const mostNodes = 100_000

func (c *Workloads) setDefaults() {
	switch {
	case c.Simulate != nil:
		c.Simulation = parseSimulation(c.Simulate)
	case c.Simulation != nil:
		c.Simulation = parseSimulation(c.Simulation.text())
	}
}

func (c *Workloads) settings() []Setting {
	help := "simulate nodes and pods without running containers (nodes=3,cpu=16); keys: nodes, name, zones, cpu, memory, pods, stages"
	return []Setting{
		{Name: "simulate", Help: help, Value: &c.Simulate, Form: Quoted, Only: Serve},
		{
			Name: "simulate-local-ports", Value: &c.LocalPorts, Only: Serve,
			Help: "ports of this machine that pods of --simulate may name as theirs (9443,8080); clients that reach the pod " +
				"reach the program that listens there",
		},
		{
			Name: "allow-local-pods", Value: &c.AllowLocalPods, Only: Serve,
			Help: "users who may create deployments/localpod or statefulsets/localpod may be the pod of the workload with " +
				"a program on their machine (bowsprit run); Services lead to it",
		},
	}
}

func (c *Workloads) validate(p *problems) {
	if c.Simulate != nil && c.Simulation != nil {
		p.add("Workloads.Simulate and Workloads.Simulation are two forms of one setting: set one of them")
		return
	}
	name, keys := "--simulate", c.Simulate
	if c.Simulation != nil {
		name, keys = "Workloads.Simulation", c.Simulation.text()
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if err := checkSimulation(key, keys[key]); err != nil {
			p.add("%s: %s=%s: %w", name, key, keys[key], err)
		}
	}
}

// validateLocalPorts checks the local ports, once the complete configuration is known.
func (c *Config) validateLocalPorts(p *problems) {
	if len(c.Workloads.LocalPorts) > 0 && c.Workloads.Simulation == nil && c.Workloads.Simulate == nil {
		p.add("--simulate-local-ports has no effect without --simulate: add --simulate")
	}
	own := c.ownPorts()
	for _, text := range c.Workloads.LocalPorts {
		n, err := strconv.ParseUint(text, 10, 16)
		switch {
		case err != nil || n == 0:
			p.add("--simulate-local-ports: %q is not a port: use a number from 1 to 65535", text)
		case own[int(n)] != "":
			p.add("--simulate-local-ports: %s is the port of %s, which pods must not stand for", text, own[int(n)])
		}
	}
}

// ownPorts returns the ports of this server and its etcds, with the name of the listener.
func (c *Config) ownPorts() map[int]string {
	own := map[int]string{}
	for _, text := range append(slices.Clone(c.Etcd.Servers), c.Etcd.ListenClientURL) {
		if u, err := url.Parse(text); err == nil {
			if n, err := strconv.Atoi(u.Port()); err == nil {
				own[n] = "etcd" // on another machine, too: its name may be one of this machine's
			}
		}
	}
	if c.Listen.SecurePort != 0 {
		own[c.Listen.SecurePort] = "this server"
	}
	return own
}

// LocalPorts returns the valid local ports.
func LocalPorts(c *Workloads) (all []int) {
	for _, text := range c.LocalPorts {
		if n, err := strconv.Atoi(text); err == nil {
			all = append(all, n)
		}
	}
	return all
}

func checkSimulation(key, value string) error {
	switch key {
	case "nodes", "pods", "zones":
		n, err := strconv.Atoi(value)
		switch {
		case err != nil || n < 0:
			return errors.New("use a number such as 3")
		case n > mostNodes:
			return fmt.Errorf("use a number up to %d", mostNodes)
		}
	case "cpu", "memory":
		if q, err := quantity.Parse(value); err != nil || q.Sign() <= 0 {
			return errors.New("use a quantity such as 8 or 32Gi")
		}
	case "name":
		if strings.Count(value, "%d") != 1 ||
			len(validation.IsDNS1123Subdomain(strings.Replace(value, "%d", "0", 1))) > 0 {
			return errors.New("use a name such as node-%d")
		}
	case "stages":
		_, err := stage.Read(value)
		return err
	default:
		return errors.New("known are nodes, name, zones, cpu, memory, pods and stages")
	}
	return nil
}

// text returns the form of a simulation for flags, without fields that are not set.
func (s *Simulation) text() map[string]string {
	keys := map[string]string{}
	set := func(key, value string, given bool) {
		if given {
			keys[key] = value
		}
	}
	number := func(key string, n *int) {
		if n != nil {
			keys[key] = strconv.Itoa(*n)
		}
	}
	number("nodes", s.Nodes)
	number("pods", s.Pods)
	set("zones", strconv.Itoa(s.Zones), s.Zones != 0)
	set("name", s.Name, s.Name != "")
	set("cpu", s.CPU.String(), !s.CPU.IsZero())
	set("memory", s.Memory.String(), !s.Memory.IsZero())
	set("stages", strings.Join(s.Stages, string(os.PathListSeparator)), len(s.Stages) > 0)
	return keys
}

// parseSimulation returns valid settings with all defaults. Stages has at most one element, a list as in PATH.
func parseSimulation(keys map[string]string) *Simulation {
	number := func(key string, otherwise int) *int {
		if n, err := strconv.Atoi(keys[key]); err == nil {
			return &n
		}
		return &otherwise
	}
	text := func(key, otherwise string) string {
		if keys[key] != "" {
			return keys[key]
		}
		return otherwise
	}
	amount := func(key, otherwise string) resource.Quantity {
		q, _ := quantity.Parse(text(key, otherwise)) // checkSimulation has accepted it
		return q
	}
	s := &Simulation{
		Nodes: number("nodes", defaultNodes), Name: text("name", defaultNodeName), Zones: *number("zones", 0),
		CPU: amount("cpu", defaultNodeCPU), Memory: amount("memory", defaultNodeMemory),
		Pods: number("pods", defaultNodePods),
	}
	if stages := keys["stages"]; stages != "" {
		s.Stages = []string{stages}
	}
	return s
}
