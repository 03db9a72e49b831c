package aspod

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/exit"
	"github.com/bowsprit/bowsprit/internal/workload/localpod/callback"
)

// running is the run of a program as a pod.
type running struct {
	cmd    *cobra.Command
	client kubernetes.Interface
	config *rest.Config
	pod    *pod
	root   root
	ports  callback.Ports
	route  *route // nil without one
}

// start opens the route, writes the files and runs the program until it ends.
func (r *running) start(route string, line []string) error {
	ctx, stop := context.WithCancel(r.cmd.Context())
	var background sync.WaitGroup
	defer background.Wait()
	defer stop()
	received := receive()
	defer received.stop()
	if route != routeNever {
		if err := r.openRoute(ctx, &background, route == routeAlways); err != nil {
			return err
		}
	}
	locations, notes, err := r.pod.locations()
	if err != nil {
		return err
	}
	for _, text := range notes {
		r.note("%s", text)
	}
	environment, err := r.pod.environment(ctx, r.client)
	if err != nil {
		return err
	}
	f := &files{client: r.client, root: r.root, notes: r.cmd.ErrOrStderr(), locations: locations}
	if err := f.fillUnless(ctx, received); err != nil {
		return err
	}
	all := environment.over(os.Environ())
	if r.root.dir != "" {
		kubeconfig, err := r.pod.writeKubeconfig(r.root)
		if err != nil {
			return err
		}
		all = append(all, "KUBECONFIG="+kubeconfig, rootVariable+"="+r.root.dir)
	}
	background.Go(func() { f.follow(ctx) })
	code, err := r.program(ctx, &background, r.pod.commandLine(line, environment), all).run(received)
	if err != nil {
		return err
	}
	return exit.Ended(code)
}

func (r *running) note(format string, args ...any) {
	fmt.Fprintf(r.cmd.ErrOrStderr(), "bowsprit: "+format+"\n", args...)
}

// program returns the program. With a route its output is kept for the server, and probed once it runs.
func (r *running) program(ctx context.Context, background *sync.WaitGroup, line, environment []string) *program {
	p := &program{line: line, environment: environment, stdout: os.Stdout, stderr: os.Stderr, started: func() {}}
	if r.route == nil {
		return p
	}
	p.stdout, p.stderr = r.route.output.tee(streamStdout, os.Stdout), r.route.output.tee(streamStderr, os.Stderr)
	for _, probe := range []struct {
		name string
		exec bool
	}{
		{"startup", r.pod.container.StartupProbe != nil && r.pod.container.StartupProbe.Exec != nil},
		{"readiness", r.pod.container.ReadinessProbe != nil && r.pod.container.ReadinessProbe.Exec != nil},
	} {
		if probe.exec {
			r.note("the %s probe is a command for the image: it is not run, and counts as a success", probe.name)
		}
	}
	p.started = func() {
		probes := &prober{container: r.pod.container, ports: r.ports, report: r.route.states.set}
		background.Go(func() { probes.run(ctx) })
	}
	return p
}

// openRoute opens the route. If it is not required, a server that refuses it leads to a note.
func (r *running) openRoute(ctx context.Context, background *sync.WaitGroup, required bool) error {
	if r.pod.target.kind == "daemonset" {
		if required {
			return fmt.Errorf("a DaemonSet has no route: use --route=never, or a Deployment or StatefulSet")
		}
		return nil
	}
	route, err := newRoute(r.config, r.client, r.pod, r.ports, r.cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	uid, done, err := route.begin(ctx)
	text := noRoute(err)
	switch {
	case err == nil:
		background.Go(func() { <-done })
		r.route, r.pod.uid = route, uid
		r.note("the program is pod %s/%s, reachable at %s", r.pod.namespace, r.pod.name, list(r.ports))
		return nil
	case text != "" && !required:
		r.note("no route to the program: %s", text)
		return nil
	case text != "":
		return fmt.Errorf("no route to the program: %s", text)
	case isRefused(err, http.StatusConflict):
		return err
	}
	return fmt.Errorf("route to the program: %w", err)
}

// list returns the ports for people.
func list(ports callback.Ports) string {
	if len(ports) == 0 {
		return "no port"
	}
	var all []string
	for _, port := range slices.Sorted(maps.Keys(ports)) {
		text := fmt.Sprint(port)
		if own := ports[port]; own != port {
			text += fmt.Sprintf(" (here %d)", own)
		}
		all = append(all, text)
	}
	if len(all) == 1 {
		return "port " + all[0]
	}
	return "ports " + strings.Join(all, ", ")
}
