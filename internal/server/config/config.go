// Package config holds the settings of a server: a group for each subject, in a file with its defaults, its flags and
// its checks.
//
// It stands below the server and imports none of its parts. Config is the value of all settings; WithDefaults completes
// it. Functions parse the settings that are text, for the checks and for the server. Values are safe to share when they
// are no longer changed.
package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// Config configures a Server. The zero value with Ephemeral or DataDir set is complete. The file of each group has its
// defaults and its validation.
type Config struct {
	// DataDir holds etcd's data, certificates and the kubeconfig. The server makes a missing directory; one process at
	// a time uses it. With Ephemeral it may be empty: then the server uses a temporary directory and removes it at the
	// end. Other users must not be able to write to it; the server removes their permission to read it.
	DataDir string
	// Ephemeral gives up durability for speed: the server never calls fsync. It is meant for tests. The data in a
	// DataDir outlives the server, but not a crash of the machine.
	Ephemeral bool
	// Kubeconfig is a file that gets the administrator's context, cluster and user, all named "bowsprit", besides
	// "<data directory>/kubeconfig". Its other contents stay, including the current context.
	Kubeconfig string

	Listen          Listen          // where clients reach the server
	Etcd            Etcd            // where objects are stored
	Encryption      Encryption      // encryption of stored objects
	TLS             TLS             // the server's certificates
	HTTP            HTTP            // response headers for browsers, server of connections
	Authentication  Authentication  // how clients are authenticated
	Authorization   Authorization   // the permissions of users
	Audit           Audit           // which requests are recorded, and where
	Observability   Observability   // metrics, profiles and traces
	Limits          Limits          // timeouts, lifetimes and maximum numbers
	Aggregation     Aggregation     // how requests reach the servers of other APIs
	Egress          Egress          // through which proxies other servers are reached
	Kubelet         Kubelet         // how the servers on nodes are reached
	Services        Services        // addresses and ports of services
	ServiceAccounts ServiceAccounts // tokens of service accounts
	Controllers     Controllers     // controllers of the server
	Admission       Admission       // plugins that change and refuse writes
	API             API             // which built-in kinds and formats are served
	Emulation       Emulation       // which release of Kubernetes the server behaves like
	Coordination    Coordination    // leader election among several servers
	Versions        Versions        // how custom objects move between versions
	Definitions     Definitions     // protection of custom objects from changes of their definition
	Workloads       Workloads       // simulation of nodes, pods and their controllers

	// Extensions are kinds of the program that embeds the server, made by package extension. The server adds them to
	// the kinds of Kubernetes.
	Extensions []Extension

	// Flags are the settings of this process by the names of its flags, for the page /flagz. Without flags the page
	// does not exist. Every user who may read the page sees them, so they must contain no secrets.
	Flags map[string]string
	// ShutdownTimeout bounds how long running requests may take to end, 10 seconds if zero.
	ShutdownTimeout time.Duration
	// Clock is the time of objects and controllers, not of certificates and tokens; nil is the machine's.
	Clock Clock
	// Log receives the server's log; nil drops it.
	Log *slog.Logger
}

// Clock is a time that can be another than the machine's.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f in a goroutine of its own after d. stop reports whether it has prevented the call.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// problems collects the errors of a configuration.
type problems []error

func (p *problems) add(format string, args ...any) { *p = append(*p, fmt.Errorf(format, args...)) }

// Validate returns all errors of the configuration. Each error names the flag that sets the field.
func (c Config) Validate() error {
	var p problems
	if c.DataDir == "" && !c.Ephemeral {
		p.add("--data-dir is empty: name a directory, or use --ephemeral for a temporary one")
	}
	c.Listen.validate(&p)
	c.Etcd.validate(&p)
	c.Encryption.validate(&p)
	c.TLS.validate(&p)
	c.HTTP.validate(&p)
	c.Authentication.validate(&p)
	c.Authorization.validate(&p)
	c.Audit.validate(&p)
	c.Observability.validate(&p)
	c.Limits.validate(&p)
	c.API.validate(&p)
	c.Emulation.validate(&p, &c.API)
	c.Coordination.validate(&p)
	c.Controllers.validate(&p)
	c.Versions.validate(&p, &c)
	c.Definitions.validate(&p)
	c.ServiceAccounts.validate(&p)
	c.Admission.validate(&p)
	c.Services.validate(&p)
	c.Aggregation.validate(&p, Emulated(&c.Emulation))
	c.Egress.validate(&p)
	c.Kubelet.validate(&p)
	c.Workloads.validate(&p)
	c.validateLocalPorts(&p)
	validateExtensions(c.Extensions, &p)
	if c.ShutdownTimeout < 0 {
		p.add("--shutdown-timeout %s is negative: use a duration such as 10s", c.ShutdownTimeout)
	}
	return errors.Join(p...)
}

// defaultShutdownTimeout is how long running requests may take to end.
const defaultShutdownTimeout = 10 * time.Second

// WithDefaults returns the configuration with every default filled in.
func WithDefaults(c Config) Config {
	emulate := Emulated(&c.Emulation) // features are on from the release on in which Kubernetes enabled them
	c.Listen.setDefaults()
	c.Workloads.setDefaults()
	c.Etcd.setDefaults(c.Workloads.Simulation != nil)
	c.Authentication.setDefaults()
	c.Authorization.setDefaults(emulate)
	c.Audit.setDefaults()
	c.Observability.setDefaults()
	c.Limits.setDefaults()
	c.HTTP.setDefaults()
	c.Aggregation.setDefaults(emulate)
	c.Kubelet.setDefaults(emulate)
	c.Services.setDefaults()
	c.Controllers.Signing.setDefaults()
	c.Coordination.setDefaults()
	c.Definitions.setDefaults()
	c.ShutdownTimeout = cmp.Or(c.ShutdownTimeout, defaultShutdownTimeout)
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Settings returns the settings of the configuration for the flags of a command, in the order of its help. Their values
// point into c.
func (c *Config) Settings(command Command) []Setting {
	all := slices.Concat(
		grouped("Server", []Setting{
			{
				Name: "data-dir", Help: "directory of the data, certificates and kubeconfig",
				Value: &c.DataDir, Default: c.DataDir, Only: Serve,
			},
			{
				Name: "ephemeral", Help: "keep nothing: a temporary directory, no fsync, removed at exit",
				Value: &c.Ephemeral, Only: Serve,
			},
		}),
		grouped("Server", c.Listen.settings(command)),
		grouped("Server", []Setting{{
			Name:  "write-kubeconfig",
			Help:  "further kubeconfig, beside <data-dir>/kubeconfig, to add the administrator's context to; the rest of the file is kept",
			Value: &c.Kubeconfig, Only: Serve,
		}}),
		grouped("Storage", c.Etcd.settings(command)),
		grouped("Storage", c.Encryption.settings()),
		grouped("TLS", c.TLS.settings()),
		grouped("HTTP", c.HTTP.settings()),
		grouped("Authentication", c.Authentication.settings()),
		grouped("Authorization", c.Authorization.settings()),
		grouped("Audit", c.Audit.settings()),
		grouped("Metrics, traces and profiles", c.Observability.settings()),
		grouped("Limits", c.Limits.settings()),
		grouped("Services and addresses", c.Services.settings()),
		grouped("Extension API servers", c.Aggregation.settings(command)),
		grouped("Nodes and pods", c.Egress.settings()),
		grouped("Nodes and pods", c.Kubelet.settings()),
		grouped("Service accounts", c.ServiceAccounts.settings()),
		grouped("Controllers", c.Controllers.settings()),
		grouped("Admission", c.Admission.settings()),
		grouped("Versions and features", c.API.settings(command, c)),
		grouped("Versions and features", c.Emulation.settings()),
		grouped("Controllers", c.Coordination.settings()),
		grouped("Versions and features", c.Versions.settings()),
		grouped("Admission", c.Definitions.settings()),
		grouped("Controllers", c.Workloads.settings()),
		grouped("Server", []Setting{{
			Name: "shutdown-timeout", Help: "how long running requests may take to end (default " + defaultShutdownTimeout.String() + ")",
			Value: &c.ShutdownTimeout, Only: Serve,
		}}),
	)
	return slices.DeleteFunc(all, func(s Setting) bool { return s.Only != "" && s.Only != command })
}

// grouped puts settings into a group of the help.
func grouped(group string, settings []Setting) []Setting {
	for i := range settings {
		settings[i].Group = group
	}
	return settings
}
