package core

import ()

// proxied are the verbs of subresources that pass requests on.
var proxied = []string{"create", "delete", "get", "patch", "update"}
