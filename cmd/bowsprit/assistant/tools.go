// Package assistant has the tools of "bowsprit mcp", by which an assistant uses one Kubernetes server in the Model
// Context Protocol.
//
// Tools is a client with the rights of its user. It returns the answers of package answer, in which the text of objects
// is marked, and masks Secrets and sensitive fields (mask). Reads are made in list, get, events, kinds and reasons. A
// write needs a plan (plan, deletion) that apply executes once. docs/design/assistants.md describes all of it. Tools
// are safe for concurrent use.
package assistant

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/assistant/answer"
	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
	"github.com/bowsprit/bowsprit/internal/net/foreign"
)

const (
	// MaxResponse bounds a response of the server to a tool, in bytes.
	MaxResponse = 64 << 20
	// sharedPages and sharedPlans bound the bytes of pages and the plans of one of many sessions.
	sharedPages = 2 << 20
	sharedPlans = 8
	// patience bounds a request to the server.
	patience = time.Minute
)

// Options are the permissions of the tools beyond masked reads.
type Options struct {
	// AllowApply adds the tool that executes plans, AllowDelete the tool that executes plans of deletions.
	AllowApply, AllowDelete bool
	// ShowSecrets shows the values of Secrets and of sensitive fields.
	ShowSecrets bool
	// Version is the version of the program.
	Version string
	// Session is the name of the session over HTTP, "" on standard input. A server has many sessions: each keeps fewer
	// plans and pages.
	Session string
}

// Tools are the tools for one server and user.
type Tools struct {
	options   Options
	server    connect.Server
	discovery discovery.DiscoveryInterface
	objects   dynamic.Interface
	builtin   kubernetes.Interface
	raw       rest.Interface
	book      answer.Book
	plans     plans
	now       func() time.Time
}

// New returns the tools for a server.
func New(server *connect.Server, options Options) (*Tools, error) {
	t := &Tools{options: options, server: *server, now: time.Now}
	if options.Session != "" {
		t.book.MaxBytes, t.plans.most = sharedPages, sharedPlans
	}
	config := rest.CopyConfig(server.Config)
	config.UserAgent = "bowsprit-mcp/" + options.Version
	config.QPS, config.Burst, config.Timeout, config.WarningHandler = 50, 100, patience, rest.NoWarnings{}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return foreign.Bounded(next, MaxResponse) })
	t.server.Config = config
	var err error
	if t.discovery, err = discovery.NewDiscoveryClientForConfig(config); err != nil {
		return nil, err
	}
	if t.objects, err = dynamic.NewForConfig(config); err != nil {
		return nil, err
	}
	if t.builtin, err = kubernetes.NewForConfig(config); err != nil {
		return nil, err
	}
	plain := rest.CopyConfig(config)
	plain.NegotiatedSerializer = serializer.NewCodecFactory(scheme.Scheme)
	t.raw, err = rest.UnversionedRESTClientFor(plain)
	return t, err
}

// namespace returns the namespace of a call: the given one, or the context's.
func (t *Tools) namespace(given string) (string, error) {
	if given == "" {
		given = t.server.Namespace
	}
	if problems := validation.IsDNS1123Label(given); len(problems) > 0 { // it becomes a part of paths
		return "", fmt.Errorf("namespace: %s", problems[0])
	}
	return given, nil
}

// title returns a resource as plural.group.
func title(r *connect.Resource) string { return r.GroupResource().String() }

// builtIn reports whether a kind is Kubernetes' own. The others may have sensitive fields.
func builtIn(r *connect.Resource) bool { return scheme.Scheme.IsGroupRegistered(r.Group) }
