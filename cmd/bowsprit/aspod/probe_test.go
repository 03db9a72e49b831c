package aspod

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bowsprit/bowsprit/internal/workload/localpod/callback"
)

// probed is a container whose port 8080, named web, is another port here.
func probed(local int) *prober {
	return &prober{
		container: corev1.Container{Ports: []corev1.ContainerPort{{Name: "web", ContainerPort: 8080}}},
		ports:     callback.Ports{8080: local},
	}
}

func portOf(a net.Addr) int { return a.(*net.TCPAddr).Port }

// TestProbes runs each kind of probe. A host in the manifest does not count.
func TestProbes(t *testing.T) {
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Host != "named" || r.Header.Get("X-Probe") != "1":
			http.Error(w, "the headers are missing", http.StatusBadRequest)
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusFound)
		case r.URL.String() != "/ready?full=1":
			http.NotFound(w, r)
		}
	}))
	defer web.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	checks := health.NewServer()
	checks.SetServingStatus("down", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
	server := grpc.NewServer()
	grpc_health_v1.RegisterHealthServer(server, checks)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	get := func(path string, port intstr.IntOrString) corev1.ProbeHandler {
		return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Host: "192.0.2.1", Path: path, Port: port, Scheme: corev1.URISchemeHTTPS,
			HTTPHeaders: []corev1.HTTPHeader{{Name: "host", Value: "named"}, {Name: "X-Probe", Value: "1"}},
		}}
	}
	tcp := func(port int) corev1.ProbeHandler {
		return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Host: "192.0.2.1", Port: intstr.FromInt(port)}}
	}
	rpc := func(service string) corev1.ProbeHandler {
		return corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: 8080, Service: &service}}
	}
	at := portOf(web.Listener.Addr())
	for _, test := range []struct {
		name  string
		local int
		probe corev1.ProbeHandler
		want  string
	}{
		{"get", at, get("/ready?full=1", intstr.FromString("web")), ""},
		{"get by number", at, get("/ready?full=1", intstr.FromInt(8080)), ""},
		{"redirect", at, get("/moved", intstr.FromInt(8080)), ""},
		{"not found", at, get("/other", intstr.FromInt(8080)), "404"},
		{"unknown name", at, get("/", intstr.FromString("other")), "no port other"},
		{"no port", at, get("/", intstr.FromInt(0)), "no port 0"},
		{"tcp", at, tcp(8080), ""},
		{"tcp unmapped", at, tcp(at), ""},
		{"tcp closed", portOf(closed.Addr()), tcp(8080), "connection refused"},
		{"grpc", portOf(listener.Addr()), rpc(""), ""},
		{"grpc down", portOf(listener.Addr()), rpc("down"), "NOT_SERVING"},
		{"grpc unknown", portOf(listener.Addr()), rpc("nosuch"), "NotFound"},
		{"none", at, corev1.ProbeHandler{}, "no action"},
	} {
		err := probed(test.local).try(t.Context(), &corev1.Probe{ProbeHandler: test.probe, TimeoutSeconds: 30})
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

// TestProbing checks when a program is started and ready, by the thresholds of the probes.
func TestProbing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var up atomic.Bool
		var last atomic.Pointer[callback.State]
		last.Store(&callback.State{})
		p := probed(1)
		probe := func(failures int32) *corev1.Probe {
			return &corev1.Probe{
				PeriodSeconds: 10, FailureThreshold: failures, SuccessThreshold: 1, InitialDelaySeconds: 5,
			}
		}
		p.container.StartupProbe, p.container.ReadinessProbe = probe(30), probe(2)
		p.report = func(s callback.State) { last.Store(&s) }
		p.check = func(context.Context, *corev1.Probe) error {
			if up.Load() {
				return nil
			}
			return net.ErrClosed
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); p.run(ctx) }()
		after := func(d time.Duration, want callback.State) {
			t.Helper()
			time.Sleep(d)
			synctest.Wait()
			if got := *last.Load(); got != want {
				t.Errorf("%+v, want %+v", got, want)
			}
		}
		after(6*time.Second, callback.State{})
		up.Store(true)
		after(10*time.Second, callback.State{Started: true})
		after(5*time.Second, callback.State{Started: true, Ready: true})
		up.Store(false)
		after(10*time.Second, callback.State{Started: true, Ready: true}) // one failure of two
		after(10*time.Second, callback.State{Started: true})
		up.Store(true)
		after(10*time.Second, callback.State{Started: true, Ready: true})
		cancel()
		<-ended
	})
}

// TestNotProbed checks that a program without probes, or with commands as probes, is ready at once.
func TestNotProbed(t *testing.T) {
	for _, probe := range []*corev1.Probe{nil, {ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{}}}} {
		var got callback.State
		p := probed(1)
		p.container.StartupProbe, p.container.ReadinessProbe = probe, probe
		p.report = func(s callback.State) { got = s }
		p.run(t.Context())
		if got != (callback.State{Started: true, Ready: true}) {
			t.Errorf("%+v", got)
		}
	}
}
