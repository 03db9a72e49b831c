package operators

import (
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	certutil "k8s.io/client-go/util/cert"
)

// managed is an operator made with kubebuilder, with webhooks.
type managed struct {
	name    string // of its program, and prefix of its objects; with -system its namespace
	module  string // its Go module; kustomize builds its objects from config/default
	options string // group and version of its configuration file
}

// install creates the operator's objects from its own manifests. The pods of its Deployment are simulated, so the
// program runs as a process, and the service of its webhooks leads to that process.
func (m managed) install(ctx context.Context, t *testing.T, s *server) {
	t.Helper()
	at := aggregated{
		namespace: m.name + "-system", service: m.name + "-webhook-service", account: m.name + "-controller-manager",
	}
	certificate, key, err := certutil.GenerateSelfSignedCertKey(at.service+"."+at.namespace+".svc", nil, nil)
	must(t, err)
	files := t.TempDir()
	must(t, os.WriteFile(filepath.Join(files, "tls.crt"), certificate, 0o600))
	must(t, os.WriteFile(filepath.Join(files, "tls.key"), key, 0o600))

	manifests := s.kubectl(ctx, "kustomize", filepath.Join(moduleDir(t, m.name, m.module), "config/default"))
	s.createEdited(ctx, t, manifests, func(obj *unstructured.Unstructured) {
		if obj.GetKind() == "Service" && obj.GetName() == at.service {
			unstructured.RemoveNestedField(obj.Object, "spec", "selector")
		}
		hooks, _ := obj.Object["webhooks"].([]any)
		for _, hook := range hooks {
			must(t, unstructured.SetNestedField(hook.(map[string]any), base64.StdEncoding.EncodeToString(certificate),
				"clientConfig", "caBundle"))
		}
	})
	s.mapper.Reset()

	ip, port := freePort(t)
	options := filepath.Join(files, "options.yaml")
	must(t, os.WriteFile(options, fmt.Appendf(nil, `apiVersion: %s
kind: Configuration
leaderElection: {leaderElect: false}
internalCertManagement: {enable: false}
metrics: {bindAddress: "0"}
health: {healthProbeBindAddress: "0"}
webhook: {host: %s, port: %s, certDir: %s}
`, m.options, ip, port, files), 0o600))
	launch(t, nil, m.name+"-controller", "--kubeconfig="+at.kubeconfig(ctx, t, s), "--config="+options)
	at.point(ctx, t, s, "", ip, port)
	until(ctx, t, "webhooks of "+m.name, func() (bool, error) {
		conn, err := net.Dial("tcp", net.JoinHostPort(ip, port))
		if err == nil {
			conn.Close()
		}
		return err == nil, err
	})
}
