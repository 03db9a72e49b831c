package testserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/bowsprit/bowsprit/internal/auth/pki"
)

// Webhooks is an address at which a test serves admission and conversion webhooks, with certificates for it. A
// manager takes the fields:
//
//	webhook.NewServer(webhook.Options{Host: hooks.Host, Port: hooks.Port, CertDir: hooks.CertDir})
type Webhooks struct {
	Host string // an address of this machine
	Port int    // free when it was chosen
	// CertDir is a directory with tls.crt and tls.key. It is removed when the server stops.
	CertDir string
	// CA is the PEM certificate with which clients verify the webhooks.
	CA []byte

	server *Server
}

// Webhooks returns a new address for webhooks on this machine.
func (s *Server) Webhooks() (*Webhooks, error) {
	const host = "127.0.0.1"
	free, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	defer free.Close()
	dir, err := s.temporary()
	if err != nil {
		return nil, err
	}
	if err := pki.WriteServing(filepath.Join(dir, "tls"), []string{host, "localhost"}, time.Now()); err != nil {
		return nil, err
	}
	ca, err := os.ReadFile(filepath.Join(dir, "tls.crt"))
	if err != nil {
		return nil, err
	}
	return &Webhooks{Host: host, Port: free.Addr().(*net.TCPAddr).Port, CertDir: dir, CA: ca, server: s}, nil
}

// Install applies the webhook configurations and definitions in files, at paths as in Server.Install. It skips other
// objects, such as the Service of the webhooks. A configuration or definition that names a service gets the address
// and the CA of w instead, with the service's path; a URL stays.
func (w *Webhooks) Install(ctx context.Context, paths ...string) error {
	objects, err := readObjects(paths)
	if err != nil {
		return err
	}
	var found []object
	for _, o := range objects {
		switch o.GetKind() {
		case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration":
			w.redirectAll(o.Object)
		case "CustomResourceDefinition":
			w.redirect(o.Object, "spec", "conversion", "webhook", "clientConfig")
		default:
			continue
		}
		found = append(found, o)
	}
	if len(found) == 0 {
		return fmt.Errorf("no webhook configuration and no definition in %q: name the files that have them", paths)
	}
	return applyAll(ctx, w.server.RESTConfig(), found)
}

// redirectAll redirects the webhooks of a configuration.
func (w *Webhooks) redirectAll(configuration map[string]any) {
	hooks, _, _ := unstructured.NestedSlice(configuration, "webhooks")
	for _, hook := range hooks {
		if h, ok := hook.(map[string]any); ok {
			w.redirect(h, "clientConfig")
		}
	}
	if len(hooks) > 0 {
		configuration["webhooks"] = hooks
	}
}

// redirect replaces the service of the client configuration at path by the address of w.
func (w *Webhooks) redirect(o map[string]any, path ...string) {
	client, found, err := unstructured.NestedMap(o, path...)
	service, isService := client["service"].(map[string]any)
	if err != nil || !found || !isService {
		return // the server checks the rest
	}
	at, _ := service["path"].(string)
	delete(client, "service")
	client["url"] = "https://" + w.address() + at
	client["caBundle"] = base64.StdEncoding.EncodeToString(w.CA)
	_ = unstructured.SetNestedMap(o, client, path...) // the path was found
}

func (w *Webhooks) address() string { return net.JoinHostPort(w.Host, strconv.Itoa(w.Port)) }

// Wait waits until the webhooks accept connections with the certificate of w, or until ctx ends.
func (w *Webhooks) Wait(ctx context.Context) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.CA)
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: roots}}
	retry := time.NewTicker(10 * time.Millisecond)
	defer retry.Stop()
	for {
		conn, err := dialer.DialContext(ctx, "tcp", w.address())
		if err == nil {
			return conn.Close()
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("webhooks at %s: %w: serve them there, with the files in CertDir", w.address(),
				ctx.Err()), err)
		case <-retry.C:
		}
	}
}
