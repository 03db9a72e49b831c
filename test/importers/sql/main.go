// Command sql is an extension API server with the rows of a table in a database (SQLite) as its objects. Other programs
// may read and write the table too: the server serves their changes at once.
package main

import (
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/bowsprit/bowsprit/extension"
)

// Ship is a row of the table ships.
type Ship struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              ShipSpec `json:"spec"`
}

// ShipSpec holds the other columns of the row.
type ShipSpec struct {
	Captain string `json:"captain" schema:"minLength=1" column:"Captain"`
	Masts   int64  `json:"masts,omitempty" schema:"minimum=1,maximum=7,default=3" column:"Masts"`
}

// kinds returns the kinds that the server serves from a database.
func kinds(s *Storage) []extension.Kind {
	kind := extension.Of("sea.example.com/v1", extension.Type[Ship]{})
	kind.Storage = s
	return []extension.Kind{kind}
}

func main() {
	file := os.Getenv("SHIPS")
	if file == "" {
		file = "ships.db"
	}
	s, err := Open(file)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v; name another file in the environment variable SHIPS\n", file, err)
		os.Exit(1)
	}
	extension.Main(extension.Server{Kinds: kinds(s)})
}
