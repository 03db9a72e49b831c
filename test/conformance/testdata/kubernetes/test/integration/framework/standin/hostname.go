package standin

import "os"

// SetHostnameFuncForTests has the servers that are started from here on believe that their machine has a name, so that
// several of them are several. It stands in for the function of k8s.io/apiserver/pkg/server.
func SetHostnameFuncForTests(name string) { _ = os.Setenv("SUT_HOSTNAME", name) }
