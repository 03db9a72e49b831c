package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// simulatedPod has a port with a fixed response, and a port that stands for a local one.
const simulatedPod = `apiVersion: v1
kind: Pod
metadata:
  name: web
  annotations:
    bowsprit.dev/simulate-ports: |
      - {port: 8080, responses: [{path: /api/..., body: fixed}]}
      - {port: 8081, local: %s}
spec:
  containers: [{name: main, image: registry.example.com/web:1}]
`

// TestSimulatedPorts forwards ports of a simulated pod with kubectl, over WebSockets and over SPDY.
func TestSimulatedPorts(t *testing.T) {
	t.Parallel()
	local := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "local "+r.URL.Path)
	}))
	t.Cleanup(local.Close)
	at, err := url.Parse(local.URL)
	if err != nil {
		t.Fatal(err)
	}
	server := startServer(t, "--ephemeral", "--simulate=nodes=1", "--simulate-local-ports="+at.Port())
	kubectl(t, server, fmt.Appendf(nil, simulatedPod, at.Port()), "apply", "-f", "-")
	kubectl(t, server, nil, "wait", "pod", "web", "--for=condition=Ready", "--timeout=2m")
	for _, sockets := range []string{"true", "false"} {
		for port, want := range map[string]string{"8080": "fixed", "8081": "local /api/version"} {
			t.Run("websockets="+sockets+",port="+port, func(t *testing.T) {
				cmd := exec.CommandContext(bounded(t, commandLimit), filepath.Join(binaries, "kubectl"), "port-forward",
					"--address=127.0.0.1", "pod/web", ":"+port)
				cmd.Env = append(os.Environ(), "KUBECONFIG="+server.kubeconfig, "KUBECTL_PORT_FORWARD_WEBSOCKETS="+sockets)
				address := strings.TrimPrefix(strings.TrimSuffix(firstLine(t, cmd), " -> "+port), "Forwarding from ")
				resp, err := http.Get("http://" + address + "/api/version")
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				if body, _ := io.ReadAll(resp.Body); string(body) != want {
					t.Errorf("%s: %q, want %q", resp.Status, body, want)
				}
			})
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
