package config

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

// TestSimulation checks that the typed form of a simulation and the form for flags mean the same.
func TestSimulation(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		typed Simulation
		keys  map[string]string
	}{
		{Simulation{}, map[string]string{}},
		{Simulation{Nodes: new(3), Zones: 2}, map[string]string{"nodes": "3", "zones": "2"}},
		{Simulation{Nodes: new(0)}, map[string]string{"nodes": "0"}},
		{
			Simulation{
				Name: "n%d", CPU: resource.MustParse("16"), Memory: resource.MustParse("1Gi"), Pods: new(0),
			}, map[string]string{"name": "n%d", "cpu": "16", "memory": "1Gi", "pods": "0"},
		},
	} {
		a := WithDefaults(Config{Workloads: Workloads{Simulation: &test.typed}}).Workloads.Simulation
		b := WithDefaults(Config{Workloads: Workloads{Simulate: test.keys}}).Workloads.Simulation
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%+v means %+v, and %v means %+v", test.typed, a, test.keys, b)
		}
		if *a.Nodes < 0 || a.Name == "" || a.CPU.IsZero() || a.Memory.IsZero() {
			t.Errorf("%+v lacks defaults: %+v", test.typed, a)
		}
	}
}

func TestSimulationErrors(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		workloads Workloads
		want      string
	}{
		{Workloads{}, ""},
		{Workloads{Simulation: &Simulation{Nodes: new(5)}}, ""},
		{Workloads{Simulate: map[string]string{"nodes": "many"}}, "--simulate: nodes=many: use a number such as 3"},
		{Workloads{Simulate: map[string]string{"node": "1"}}, "--simulate: node=1: known are nodes"},
		{Workloads{Simulate: map[string]string{"cpu": "-1"}}, "--simulate: cpu=-1: use a quantity such as 8 or 32Gi"},
		{Workloads{Simulation: &Simulation{Nodes: new(-1)}}, "Workloads.Simulation: nodes=-1: use a number such as 3"},
		{Workloads{Simulation: &Simulation{Zones: 1e6}}, "Workloads.Simulation: zones=1000000: use a number up to 100000"},
		{Workloads{Simulation: &Simulation{Name: "node"}}, "Workloads.Simulation: name=node: use a name such as node-%d"},
		{Workloads{Simulation: &Simulation{Stages: []string{"absent.yaml"}}}, "Workloads.Simulation: stages=absent.yaml: "},
		{Workloads{Simulation: &Simulation{}, Simulate: map[string]string{}}, "set one of them"},
	} {
		err := Config{Ephemeral: true, Workloads: test.workloads}.Validate()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.workloads, err, test.want)
		}
	}
}

func TestLocalPorts(t *testing.T) {
	t.Parallel()
	const external, etcd = "https://etcd:2379", "http://127.0.0.1:2379"
	for _, test := range []struct {
		ports []string
		but   func(*Config)
		want  string
	}{
		{[]string{"9443", "8080"}, func(*Config) {}, ""},
		{[]string{"9443"}, func(c *Config) { c.Workloads.Simulation = nil }, "has no effect without --simulate"},
		{[]string{"0"}, func(*Config) {}, `"0" is not a port`},
		{[]string{"65536"}, func(*Config) {}, `"65536" is not a port`},
		{[]string{"/run/x.sock"}, func(*Config) {}, `"/run/x.sock" is not a port`},
		{[]string{"6443"}, func(c *Config) { c.Listen.SecurePort = 6443 }, "6443 is the port of this server"},
		{[]string{"2379"}, func(c *Config) { c.Etcd.Servers = []string{external} }, "2379 is the port of etcd"},
		{[]string{"2379"}, func(c *Config) { c.Etcd.ListenClientURL = etcd }, "2379 is the port of etcd"},
	} {
		c := Config{Ephemeral: true, Workloads: Workloads{Simulation: &Simulation{}, LocalPorts: test.ports}}
		test.but(&c)
		err := c.Validate()
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: %v, want %q", test.ports, err, test.want)
		}
	}
}
