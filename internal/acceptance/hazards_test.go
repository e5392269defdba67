package acceptance_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// Tests are named after what they keep from happening. These are things that went wrong for users of comparable tools; some
// have no test here, since nothing in this provider could bring them about.
//
// The wrong object
//
//	T1  a name that was used again is taken for the sandbox that had it
//	T2  a create takes over what has the name already
//	T3  dependants do not learn of a replacement under the same name
//	T4  a state without a valid id leads to a delete of something else, or of nothing
//	T5  an import is bound to a name instead of an id
//	T6  a state without an identity, or with a changed one, blocks every plan
//	O1  a request meant for one sandbox reaches its successor
//	O2  a gateway that does not know the condition drops it
//	O3  a name is taken for the same name in another workspace
//	O15 O16 providers are attached to, or detached from, another sandbox, or others' changes are undone
//	O20 another or a rebuilt gateway answers
//	O21 an ambient selection decides which gateway is asked
//	O24 O25 what belongs to a sandbox, or a wait for it, moves on to its successor
//	O26 others replace sandboxes under the same name: see package chaos
//	O30 a start brings back what is being deleted
//
// Gone, or only looking so
//
//	T7  what was removed by hand blocks plans and destroys
//	T8  O8 O9 a refusal, a page of a proxy or a lost access counts as gone
//	T9  T10 T11 O7 a delete that is over is not recognized, or one that is not counts as over
//	T12 T13 T14 T15 O5 O6 a delete that is rolled back, under way already, stuck or overtaken
//	O27 a state that says too little can never be cleared
//	O31 what no state knows of cannot be found
//
// Creates that happened by half
//
//	T16 T17 T20 a sandbox whose create failed, timed out or was not answered is forgotten, or made twice
//	T18 T19 an interrupted create leaves nothing, or too little, in the state
//	T21 a taken name is waited for
//	O10 O11 O12 a failed, sick or finished sandbox blocks the next apply, or is replaced without being asked
//
// Plans, names and limits
//
//	T22 T23 a replacement meets its predecessor's name
//	T24 T25 T27 plans with changes that nobody made, or that never come to an end
//	O29 a change of the policy that a running sandbox cannot take fails, and one that it can take replaces it
//	T26 an apply ends before the sandbox is usable, or waits for what cannot come
//	O13 O14 stops and starts, and limits of names and labels
//
// Configuration, credentials and secrets
//
//	T28 O17 O18 a token dies during an apply
//	T29 a value that is not known yet counts as not set
//	T30 O19 O22 O23 errors of TLS and of the login that name no attribute, or come late
//	T32 secrets in plans, messages and logs
//	T33 write-only values do not reach the sandbox, or reach the state

// Every test that is named after something that went wrong is on the list above.
func TestHazardsAreListed(t *testing.T) {
	t.Parallel()
	own, err := os.ReadFile("hazards_test.go")
	if err != nil {
		t.Fatal(err)
	}
	number := regexp.MustCompile(`[TO][0-9]+`)
	var listed []string
	for _, line := range regexp.MustCompile(`(?m)^//\t(.*)$`).FindAllString(string(own), -1) {
		listed = append(listed, number.FindAllString(line, -1)...)
	}
	files, err := filepath.Glob("*_test.go")
	more, err2 := filepath.Glob(filepath.Join("*", "*_test.go"))
	if files = append(files, more...); err != nil || err2 != nil || len(listed) == 0 {
		t.Fatal(files, listed, err, err2)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, test := range regexp.MustCompile(`(?m)^func Test((?:[TO][0-9]+)+)`).FindAllStringSubmatch(string(text), -1) {
			for _, hazard := range number.FindAllString(test[1], -1) {
				if !slices.Contains(listed, hazard) {
					t.Errorf("%s tests %s, which is not listed", file, hazard)
				}
			}
		}
	}
}
