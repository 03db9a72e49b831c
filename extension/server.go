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
)

// Server is an extension API server: it has its own kinds, and takes from the API server in front who its users are,
// what they may do, which namespaces there are, and by which policies and webhooks writes are admitted.
type Server struct {
	Kinds []Kind // what it serves
	// Front reaches the API server in front; nil is the one of the cluster in which this process runs as a pod.
	Front *rest.Config
	// Config says the rest: where to listen, certificates, audit, limits. With a DataDir or Etcd.Servers objects
	// outlive the process; without either they are gone with it. How users are authenticated and authorized is the
	// business of the API server in front.
	Config bowsprit.Config
	// Register has the server tell the API server in front of itself; nil if that is done otherwise, as `bowsprit
	// extension install` does.
	Register *Registration
}

// Registration says how the API server in front reaches a Server.
type Registration struct {
	// Namespace and Service name the service behind which the server is, and Port is the service's; 0 is the port on
	// which the server listens.
	Namespace, Service string
	Port               int // see Namespace
	// Address is a host name or an address at which the API server in front reaches this machine, such as "localhost".
	// The service is then made, without a network of pods. "" is for a service that is there.
	Address string
}

// New returns the server as one that can be run. The error says what is wrong with the kinds or the configuration.
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
	return bowsprit.New(s.config(brought{part.Extension{Part: p, Behind: host.Behind()}}))
}

// Run serves until ctx ends or something breaks.
func (s Server) Run(ctx context.Context) error {
	server, err := s.New()
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

// config returns the configuration of the server that the extension stands in.
func (s Server) config(e bowsprit.Extension) bowsprit.Config {
	c := s.Config
	c.Extensions = []bowsprit.Extension{e}
	if c.DataDir == "" {
		c.Ephemeral = true
	}
	// What the server in front does for all its servers.
	off := false
	c.Limits.PriorityAndFairness = &off
	c.Controllers.Enabled = []string{"-*"}
	// A client shows the certificate that the server asks for. That of the server in front is of an authority of which
	// nothing is known before it has been asked.
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
