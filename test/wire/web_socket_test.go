package wire

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/websocket"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/bowsprit/bowsprit"
	"github.com/bowsprit/bowsprit/testserver"
)

// TestWatchByWebSocket watches by WebSocket and authenticates through its protocols, as programs in browsers do.
func TestWatchByWebSocket(t *testing.T) {
	tokens := tokenFile(t, `secret,eve,1,"system:masters"`)
	server := testserver.Start(t, func(c *bowsprit.Config) { c.Authentication.TokenAuthFile = tokens })
	client, err := kubernetes.NewForConfig(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	dial := func(query, token, accept string) (*websocket.Conn, error) {
		return dialWatch(t, server, query, token, accept)
	}
	if conn, err := dial("", "wrong", ""); err == nil {
		t.Errorf("let in by a wrong token: %v", conn.Config().Protocol)
	}
	if _, err := dial("labelSelector=(", "secret", ""); err == nil {
		t.Error("a selector that is none")
	}

	text, err := dial("fieldSelector=metadata.name=a", "secret", "")
	if err != nil {
		t.Fatal(err)
	}
	if p := text.Config().Protocol; len(p) != 1 || p[0] != "v1.test" {
		t.Errorf("protocols %q", p)
	}
	binary, err := dial("fieldSelector=metadata.name=a", "secret", runtime.ContentTypeProtobuf)
	if err != nil {
		t.Fatal(err)
	}
	made, err := client.CoreV1().ConfigMaps("default").Create(t.Context(),
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}

	var message []byte
	if err := websocket.Message.Receive(text, &message); err != nil {
		t.Fatal(err)
	}
	var event metav1.WatchEvent
	if err := json.Unmarshal(message, &event); err != nil {
		t.Fatalf("%s: %v", message, err)
	}
	same := func(event metav1.WatchEvent) {
		t.Helper()
		obj, err := runtime.Decode(scheme.Codecs.UniversalDeserializer(), event.Object.Raw)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := obj.(*corev1.ConfigMap); event.Type != "ADDED" || !ok || got.UID != made.UID {
			t.Errorf("%s %v", event.Type, obj)
		}
	}
	same(event)
	if err := websocket.Message.Receive(binary, &message); err != nil {
		t.Fatal(err)
	}
	event = metav1.WatchEvent{}
	if err := event.Unmarshal(message); err != nil {
		t.Fatal(err)
	}
	same(event)

	short, err := dial("timeoutSeconds=1&fieldSelector=metadata.name=b", "secret", "")
	if err != nil {
		t.Fatal(err)
	}
	if err := websocket.Message.Receive(short, &message); err != io.EOF {
		t.Errorf("a watch whose time is over ends with %v, %s", err, message)
	}
}

// dialWatch begins a watch of the ConfigMaps of the default namespace.
func dialWatch(t *testing.T, server *testserver.Server, query, token, accept string) (*websocket.Conn, error) {
	t.Helper()
	config, err := websocket.NewConfig("wss"+strings.TrimPrefix(server.URL(), "https")+
		"/api/v1/namespaces/default/configmaps?watch=1&"+query, server.URL())
	if err != nil {
		t.Fatal(err)
	}
	if config.TlsConfig, err = rest.TLSConfigFor(rest.AnonymousClientConfig(server.RESTConfig())); err != nil {
		t.Fatal(err)
	}
	config.Protocol = []string{"base64url.bearer.authorization.k8s.io." +
		base64.RawURLEncoding.EncodeToString([]byte(token)), "v1.test"}
	config.Header = http.Header{"Accept": {accept}}
	conn, err := config.DialContext(t.Context())
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { conn.Close() })
	return conn, conn.SetDeadline(time.Now().Add(time.Minute)) // a missing response ends the test
}

// A client that does not read does not hold a watch beyond its end, nor the server.
func TestWebSocketIsNotRead(t *testing.T) {
	tokens := tokenFile(t, `secret,eve,1,"system:masters"`)
	server := testserver.Start(t,
		func(c *bowsprit.Config) { c.Authentication.TokenAuthFile, c.ShutdownTimeout = tokens, 45*time.Second })
	client, err := kubernetes.NewForConfig(server.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 { // more than a connection's buffers hold
		large := &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("a-", i)},
			Data:       map[string]string{"k": strings.Repeat("x", 500_000)},
		}
		if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), large,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := dialWatch(t, server, "", "secret", ""); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	}()
	select {
	case <-stopped:
	case <-time.After(5 * time.Minute):
		t.Error("the server waits for a client that does not read")
	}
}

// tokenFile writes a file for --token-auth-file.
func tokenFile(t *testing.T, line string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(line+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
