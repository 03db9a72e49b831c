package extension

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/internal/feature/extension/behind"
	"github.com/bowsprit/bowsprit/internal/object"
	"github.com/bowsprit/bowsprit/internal/part"
	"github.com/bowsprit/bowsprit/internal/server/config"
)

// Server is an extension API server. It has its own kinds. The API server in front authenticates and authorizes its
// users, and provides the namespaces and the policies and webhooks that admit writes.
type Server struct {
	Kinds []Kind // kinds to serve
	// Front connects to the API server in front; nil means the API server of the cluster in which this process runs as
	// a pod.
	Front *rest.Config
	// Config is the rest of the configuration: the address, certificates, audit, limits. With a DataDir or Etcd.Servers
	// objects outlive the process; otherwise they are lost with it. The API server in front authenticates and
	// authorizes users.
	Config bowsprit.Config
	// Register makes the server register itself with the API server in front; nil means that another program does, such
	// as `bowsprit extension install`.
	Register *Registration
}

// Registration configures how the API server in front reaches a Server.
type Registration struct {
	// Namespace and Service name the service behind which the server is, and Port is the service's; 0 is the port on
	// which the server listens.
	Namespace, Service string
	Port               int // see Namespace
	// Address is a host name or an address at which the API server in front reaches this machine, such as "localhost".
	// The server then makes the service, without a network of pods. "" means an existing service.
	Address string
}

// New returns a server that is not running yet. It returns an error for invalid kinds or an invalid configuration.
func (s Server) New() (*bowsprit.Server, error) {
	p, err := makePart(s.Kinds)
	if err != nil {
		return nil, err
	}
	front := s.Front
	if front == nil {
		if front, err = rest.InClusterConfig(); err != nil {
			return nil, fmt.Errorf("the API server in front: %w: run in a pod, or name one", err)
		}
	}
	host, err := behind.New(front)
	if err != nil {
		return nil, err
	}
	if r := s.Register; r != nil {
		if r.Namespace == "" || r.Service == "" {
			return nil, errors.New("a registration needs the namespace and the name of a service")
		}
		versions, err := s.versions()
		if err != nil {
			return nil, err
		}
		host.Register(behind.Registration{
			Versions: versions, Namespace: r.Namespace, Name: r.Service, Port: r.Port, Address: r.Address,
		})
	}
	return bowsprit.New(s.config(config.NewExtension(part.Extension{Part: p, Behind: host.Behind()})))
}

// Run serves until ctx ends or a part fails.
func (s Server) Run(ctx context.Context) error {
	server, err := s.New()
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

// config returns the configuration of the server with the extension.
func (s Server) config(e bowsprit.Extension) bowsprit.Config {
	c := s.Config
	c.Extensions = []bowsprit.Extension{e}
	if c.DataDir == "" {
		c.Ephemeral = true
	}
	// The server in front does this for all its servers.
	off := false
	c.Limits.PriorityAndFairness = &off
	c.Controllers.Enabled = []string{"-*"}
	// A client chooses its certificate by the authorities that the server requests. The authority of the server in
	// front is unknown at the start, so this server requests no specific ones.
	c.Authentication.NoOwnClients = true
	return c
}

// versions returns the groups and versions of the kinds, each once.
func (s Server) versions() (all []schema.GroupVersion, err error) {
	seen := map[schema.GroupVersion]bool{}
	for i := range s.Kinds {
		k, err := s.Kinds[i].internal()
		if err != nil {
			return nil, err
		}
		for _, v := range object.Objects(object.List(k.Definition, "spec", "versions")) {
			gv := schema.GroupVersion{
				Group: object.String(k.Definition, "spec", "group"), Version: object.String(v, "name"),
			}
			if served := object.True(v, "served"); served && !seen[gv] {
				seen[gv] = true
				all = append(all, gv)
			}
		}
	}
	return all, nil
}
