package explain

import (
	"context"
	"errors"
	"strings"

	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit/cmd/bowsprit/connect"
)

// Request is a request that Denied explains.
type Request struct {
	// User and Groups are the user of the request, by default the caller.
	User   string
	Groups []string
	// Namespace is the namespace of the request, if its resource has one. AllNamespaces ignores it.
	Namespace     string
	AllNamespaces bool
	// Words are a verb, a resource and perhaps a name, or a verb and a path, or the text of a refusal.
	Words []string
}

// errNoWords is the error of a Request without words.
var errNoWords = errors.New("no request given: name a verb and a resource, or pass the text of the refusal")

// Denied returns the text of "bowsprit why-denied" for a request.
func Denied(ctx context.Context, config *rest.Config, q Request) (string, error) {
	if len(q.Words) == 0 || len(q.Words) == 1 && parseRefusal(q.Words[0]) == nil {
		return "", errNoWords
	}
	flags := &deniedFlags{user: q.User, groups: q.Groups, wholeCluster: q.AllNamespaces}
	w, err := flags.parse(config, q.Namespace, q.Words, strings.NewReader(""))
	if err != nil {
		return "", err
	}
	answer, err := explained(ctx, config, w)
	if err != nil {
		return "", err
	}
	return answer.text(w), nil
}

// Stuck returns the text of "bowsprit why-stuck" for an object. resource is a word as connect.FindResource takes it.
func Stuck(ctx context.Context, server *connect.Server, resource, name string) (string, error) {
	own := *server
	own.Config = rest.CopyConfig(server.Config)
	s, err := newSearch(&own, "")
	if err != nil {
		return "", err
	}
	found, err := s.run(ctx, resource, name)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	err = found.text(&b)
	return b.String(), err
}
