package main

import (
	"bytes"
	"strings"

	"github.com/spf13/cobra"
)

// bashAlone makes the script for bash work where nothing has loaded the package
// bash-completion, as for root on Debian: it took "command not found" for an answer.
func bashAlone(c *cobra.Command) {
	if c == nil {
		return
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		plain, err := c.Flags().GetBool("no-descriptions")
		if err != nil {
			return err
		}
		var script bytes.Buffer
		if err := c.Root().GenBashCompletionV2(&script, !plain); err != nil {
			return err
		}
		const asked = `    _get_comp_words_by_ref "$@" cur prev words cword` + "\n"
		_, err = c.OutOrStdout().Write([]byte(strings.Replace(script.String(), asked, bashWords, 1)))
		return err
	}
}

// bashWords reads the command line where bash-completion does not: COMP_WORDS, with
// what Readline broke at = and : in one word again, up to the cursor.
const bashWords = `    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
        return
    fi
    local i w last=-1 glued rest=$COMP_LINE room
    words=() cword=0
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        w=${COMP_WORDS[i]}
        glued=
        [[ $i -gt 0 && $rest != [[:space:]]* && ( $w == [=:]* || ${words[last]} == *[=:] ) ]] && glued=yes
        rest=${rest#"${rest%%[![:space:]]*}"}
        room=$((COMP_POINT - ${#COMP_LINE} + ${#rest}))
        rest=${rest#"$w"}
        if [[ $i -eq $COMP_CWORD && $room -ge 0 && $room -lt ${#w} ]]; then
            w=${w:0:room}
        fi
        if [[ -n $glued ]]; then
            words[last]=${words[last]}$w
        else
            last=$((last + 1))
            words[last]=$w
        fi
        [[ $i -eq $COMP_CWORD ]] && cword=$last
    done
    cur=${words[cword]}
    prev=
    [[ $cword -gt 0 ]] && prev=${words[cword - 1]}
    return 0
`
