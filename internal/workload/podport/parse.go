package podport

import (
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/bowsprit/bowsprit/internal/workload/cluster"
)

// annotation is a pod's list of ports.
const annotation = "bowsprit.dev/simulate-ports"

// maxPorts bounds the ports of a pod, and maxResponses the responses of a port.
const (
	maxPorts     = 100
	maxResponses = 100
)

// port is a simulated port of a pod: a local port stands for it, or else HTTP responses.
type port struct {
	// Port is the number of the port, or the name of a container's port.
	Port intstr.IntOrString `json:"port"`
	// Local is a port of the server's machine, 0 for none.
	Local int `json:"local,omitempty"`
	// Responses are the responses to requests. The first one that fits counts; without any, each request has an empty
	// response with status 200.
	Responses []response `json:"responses,omitempty"`
}

// response is a fixed HTTP response.
type response struct {
	// Method and Path select requests. Empty ones fit every request. "*" in the path stands for any one segment, "..."
	// at its end for any further segments. The query does not count.
	Method string `json:"method,omitempty"`
	Path   string `json:"path,omitempty"`
	// Status is the status code, 200 if it is 0.
	Status int `json:"status,omitempty"`
	// ContentType is the type of the body. If it is empty, Go's rules for content decide.
	ContentType string `json:"contentType,omitempty"`
	Body        string `json:"body,omitempty"`
}

// parse reads the annotation.
func parse(text string) (all []port, err error) {
	if all, err = cluster.ListIn[port](text, "ports", "port, local and responses", maxPorts); err != nil {
		return nil, err
	}
	for i := range all {
		if err := all[i].check(); err != nil {
			return nil, fmt.Errorf("entry %d: %w", i, err)
		}
	}
	return all, nil
}

func (p *port) check() error {
	switch {
	case p.Port.Type == intstr.String && p.Port.StrVal == "", p.Port.Type == intstr.Int && !isPort(int(p.Port.IntVal)):
		return fmt.Errorf("port %q is neither a number from 1 to 65535 nor the name of a container's port",
			p.Port.String())
	case p.Local != 0 && !isPort(p.Local):
		return fmt.Errorf("local %d is not a number from 1 to 65535", p.Local)
	case p.Local != 0 && len(p.Responses) > 0:
		return fmt.Errorf("port %s has both local and responses: use one of them", p.Port.String())
	case len(p.Responses) > maxResponses:
		return fmt.Errorf("port %s has %d responses, more than %d", p.Port.String(), len(p.Responses), maxResponses)
	}
	for _, r := range p.Responses {
		switch {
		case r.Status != 0 && (r.Status < http.StatusOK || r.Status > 599):
			return fmt.Errorf("port %s: status %d is not between 200 and 599", p.Port.String(), r.Status)
		case r.Path != "" && !strings.HasPrefix(r.Path, "/"):
			return fmt.Errorf("port %s: path %q does not begin with /", p.Port.String(), r.Path)
		case strings.ContainsAny(r.ContentType, "\r\n"):
			return fmt.Errorf("port %s: contentType %q has a line break", p.Port.String(), r.ContentType)
		}
	}
	return nil
}

func isPort(n int) bool { return n > 0 && n < 1<<16 }

// find returns the response to a request, or nil if none fits.
func (p *port) find(method, path string) *response {
	if len(p.Responses) == 0 {
		return &response{}
	}
	for i := range p.Responses {
		if r := &p.Responses[i]; (r.Method == "" || strings.EqualFold(r.Method, method)) && r.fits(path) {
			return r
		}
	}
	return nil
}

func (r *response) fits(path string) bool {
	if r.Path == "" {
		return true
	}
	wanted, segments := strings.Split(r.Path, "/"), strings.Split(path, "/")
	if last := len(wanted) - 1; wanted[last] == "..." && len(segments) >= last {
		wanted, segments = wanted[:last], segments[:last]
	}
	if len(wanted) != len(segments) {
		return false
	}
	for i, segment := range wanted {
		if segment != "*" && segment != segments[i] {
			return false
		}
	}
	return true
}
