# Completion of winnow for bash. Written by docs/shell.py.
_winnow() {
  local word=${COMP_WORDS[COMP_CWORD]} words=
  if [ "$COMP_CWORD" = 1 ]; then
    words='research search fetch extract raptor check serve folders index status stop logs models cache sessions install uninstall desk doctor update --help --version'
  else
    case ${COMP_WORDS[1]} in
    research) words='--help --json --quiet --folder --searxng --set --max-tokens --max-pages --freshness --answer --session' ;;
    search) words='--help --json --quiet --folder --searxng --set --max-results --freshness --language --site --after --before --region --safe-search --page --rank --max-tokens' ;;
    fetch) words='--help --json --quiet --folder --searxng --set --question --max-tokens --part --format --cursor --fresh' ;;
    extract) words='--help --json --quiet --folder --searxng --set --max-tokens --draft --fresh' ;;
    raptor) words='--help --json --quiet --folder --searxng --set --mode --max-tokens --chunking --walk' ;;
    check) words='--help --json --quiet --folder --searxng --set' ;;
    serve) words='--help --json --quiet --folder --searxng --set --http --host --port --allow-host --allow-origin --daemon --without-auth' ;;
    folders) words='add remove list --help --json --quiet --folder --searxng --set' ;;
    index) words='--help --json --quiet --folder --searxng --set --watch' ;;
    status) words='--help --json --quiet --folder --searxng --set --watch' ;;
    stop) words='--help --json --quiet --folder --searxng --set' ;;
    logs) words='--help --json --quiet --folder --searxng --set' ;;
    models) words='show list pull remove --help --json --quiet --folder --searxng --set --dry-run' ;;
    cache) words='path clear --help --json --quiet --folder --searxng --set' ;;
    sessions) words='show export remove --help --json --quiet --folder --searxng --set --format' ;;
    install) words='claude-desktop claude-code cursor vscode windsurf gemini lmstudio other --help --json --quiet --folder --searxng --set --scope --dry-run --yes --undo' ;;
    uninstall) words='--help --json --quiet --folder --searxng --set --yes' ;;
    desk) words='--help --json --quiet --folder --searxng --set --port --no-browser' ;;
    doctor) words='--help --json --quiet --folder --searxng --set --report' ;;
    update) words='--help --json --quiet --folder --searxng --set' ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _winnow winnow winnow-mcp
