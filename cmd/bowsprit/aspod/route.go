package aspod

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/internal/workload/localpod/callback"
)

// The values of --route.
const (
	routeAuto   = "auto"
	routeAlways = "always"
	routeNever  = "never"
)

const (
	// retryFirst and retryMost bound the pause before a lost route is opened again.
	retryFirst = 500 * time.Millisecond
	retryMost  = 10 * time.Second
	// conflictMost is how long the first attempt waits for the end of another program's route: the server may not have
	// noticed yet that a killed command has gone.
	conflictMost = 5 * time.Second
	// maxStatus bounds the response in place of a route.
	maxStatus = 64 << 10
)

// route is the way from the server to the program. The server holds it as long as the connection of this command lasts.
type route struct {
	client *http.Client
	url    string
	ports  callback.Ports
	output *output
	states *states
	notes  io.Writer
}

// newRoute returns a route for a pod. config and client are the caller's.
func newRoute(
	config *rest.Config, client kubernetes.Interface, p *pod, ports callback.Ports, notes io.Writer,
) (*route, error) {
	config = rest.CopyConfig(config)
	config.NextProtos, config.Timeout = []string{"http/1.1"}, 0 // HTTP/2 has no upgrades
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	request := client.AppsV1().RESTClient().Post().Namespace(p.namespace).Resource(p.target.kind+"s").
		Name(p.target.name).SubResource("localpod").Param(callback.ContainerParameter, p.container.Name)
	for _, port := range slices.Sorted(maps.Keys(ports)) {
		request.Param(callback.PortParameter, strconv.Itoa(port))
	}
	return &route{
		client: &http.Client{Transport: transport}, url: request.URL().String(), ports: ports, output: newOutput(),
		states: newStates(), notes: notes,
	}, nil
}

// open opens the route once. A *metav1.Status error is the server's refusal.
func (r *route) open(ctx context.Context) (net.Conn, http.Header, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.url, nil)
	if err != nil {
		return nil, nil, err
	}
	conn, headers, err := callback.Dial(r.client, request)
	var refused *callback.Refused
	if errors.As(err, &refused) {
		return nil, nil, refusal(refused.Response)
	}
	return conn, headers, err
}

// refusalError is a server's refusal of a route.
type refusalError struct {
	code    int
	message string
}

// Error implements error.
func (r *refusalError) Error() string { return r.message }

// refusal returns the error of a response.
func refusal(response *http.Response) error {
	defer response.Body.Close()
	status := metav1.Status{}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxStatus))
	if err != nil || json.Unmarshal(body, &status) != nil || status.Message == "" {
		status.Message = response.Status
	}
	return &refusalError{response.StatusCode, status.Message}
}

// isRefused reports whether err is a refusal with one of these codes.
func isRefused(err error, codes ...int) bool {
	var r *refusalError
	return errors.As(err, &r) && slices.Contains(codes, r.code)
}

// begin opens the route and holds it until ctx ends; done is closed then. It returns the uid of the pod.
func (r *route) begin(ctx context.Context) (uid string, done <-chan struct{}, err error) {
	late, cancel := context.WithTimeout(ctx, conflictMost)
	defer cancel()
	conn, headers, err := r.open(ctx)
	for pause := retryFirst; isRefused(err, http.StatusConflict) && sleep(late, pause); {
		conn, headers, err = r.open(ctx)
	}
	if err != nil {
		return "", nil, err
	}
	held := make(chan struct{})
	go func() { defer close(held); r.hold(ctx, conn) }()
	return headers.Get(callback.UIDHeader), held, nil
}

// hold serves the server's requests. It opens the route again when the connection is lost.
func (r *route) hold(ctx context.Context, conn net.Conn) {
	pages := http.NewServeMux()
	pages.Handle(callback.StatePath, r.states)
	pages.Handle(callback.LogPath, r.output)
	for {
		callback.Serve(ctx, conn, r.ports, pages)
		var err error
		pause, printed := retryFirst, ""
		for conn = nil; conn == nil; pause = min(2*pause, retryMost) {
			if !sleep(ctx, pause) {
				return
			}
			if conn, _, err = r.open(ctx); err == nil {
				break
			}
			if text := err.Error(); ctx.Err() == nil && text != printed {
				fmt.Fprintf(r.notes, "bowsprit: the route to the program is interrupted: %s\n", text)
				printed = text
			}
			if isRefused(err, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed) {
				return // the right, the workload or the flag has gone
			}
		}
	}
}

// noRoute returns the note for a server that refuses the route, or "" for other errors.
func noRoute(err error) string {
	switch {
	case isRefused(err, http.StatusNotFound, http.StatusMethodNotAllowed):
		return "the server has no local pods (bowsprit serve --allow-local-pods)"
	case isRefused(err, http.StatusForbidden):
		return err.Error()
	}
	return ""
}

// states passes the current state of the program on to the server. It is safe for concurrent use.
type states struct {
	mu      sync.Mutex
	now     callback.State
	changed chan struct{} // closed at the next change
}

func newStates() *states { return &states{changed: make(chan struct{})} }

func (s *states) set(now callback.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = now
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *states) get() (callback.State, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now, s.changed
}

// ServeHTTP sends the state, and each change.
func (s *states) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	control, lines := http.NewResponseController(w), json.NewEncoder(w)
	for {
		now, changed := s.get()
		if lines.Encode(now) != nil || control.Flush() != nil {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// parsePorts returns the ports that the server may reach: the TCP ports of the container, and given ones. A given one
// is PORT, or PORT=LOCAL for a program that listens at another port of this machine.
func parsePorts(c corev1.Container, given []string) (callback.Ports, error) {
	ports := callback.Ports{}
	for _, p := range c.Ports {
		if p.Protocol == "" || p.Protocol == corev1.ProtocolTCP {
			ports[int(p.ContainerPort)] = int(p.ContainerPort)
		}
	}
	for _, text := range given {
		port, local, mapped := strings.Cut(text, "=")
		if !mapped {
			local = port
		}
		from, err := strconv.ParseUint(port, 10, 16)
		to, err2 := strconv.ParseUint(local, 10, 16)
		if err != nil || err2 != nil || from == 0 || to == 0 {
			return nil, fmt.Errorf("--port %q is not a port: use PORT or PORT=LOCAL with numbers from 1 to 65535", text)
		}
		ports[int(from)] = int(to)
	}
	if len(ports) > callback.MaxPorts {
		return nil, fmt.Errorf("%d ports are more than %d", len(ports), callback.MaxPorts)
	}
	return ports, nil
}
