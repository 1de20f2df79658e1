from kernelviz.cli import main

raise SystemExit(main())
